"""What stands in the files of the data folder of a user that was forgotten (IM-43, C-17)."""

from pathlib import Path

from recuerdo.agent import Agent
from tests.recuerdo.carlos import CARLOS, CONVERSATION, House

USER = "ana.zebra@mail.example"
TEXT = "Prefiere los pisos altos de los hoteles"


async def vectors_of(agent: Agent, user: str) -> list[bytes]:
    async with agent.services.database.connection() as connection:
        cursor = await connection.execute(
            "select embedding from recuerdo.user_memory where user_id = %s order by id", (user,)
        )
        return [row["embedding"] for row in await cursor.fetchall()]


def files_with(folder: Path, *needles: bytes) -> set[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.name for path in files if any(needle in path.read_bytes() for needle in needles)}


async def test_im_43_c_17_no_file_holds_a_name_or_a_vector_of_a_forgotten_user(
    agent: Agent, house: House
) -> None:
    kept = await agent.memory.remember(TEXT, user=USER)
    await agent.memory.remember("Quiere viajar en junio", user=USER)
    # The vector of the earlier text is in the index's queue, too.
    await agent.memory.update(kept.id, "Prefiere los pisos bajos", user=USER)
    await agent.memory.remember(TEXT, user=CARLOS)
    await agent.send("recuerda que odio las plumas", user=USER, conversation=CONVERSATION)
    others = await vectors_of(agent, CARLOS)
    mine = await vectors_of(agent, USER)
    assert len(mine) >= 2
    chroma = house.data / "chroma"
    assert files_with(chroma, *mine) == {"chroma.sqlite3"}
    await agent.memory.forget_all(user=USER)
    assert files_with(house.data, *mine, USER.encode()) == set()
    assert files_with(chroma, *others) == {"chroma.sqlite3"}
    assert len(await agent.memory.recall("pisos", user=CARLOS)) == 1
