"""The loop behind ``send_sync``: an interrupted caller leaves nothing half done."""

import asyncio

import pytest

from recuerdo.stores.background_loop import BackgroundLoop


def test_work_that_is_interrupted_puts_its_things_away_first(monkeypatch: pytest.MonkeyPatch) -> None:
    put_away = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            put_away.append("yes")

    loop = BackgroundLoop()
    interrupt_soon(monkeypatch)
    try:
        with pytest.raises(SystemExit):
            loop.run(work())
        assert put_away == ["yes"]
    finally:
        loop.close()


def interrupt_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's wait ends as a signal handler would end it."""
    submit = asyncio.run_coroutine_threadsafe

    def submitted(work, loop):
        future = submit(work, loop)

        def interrupted(timeout=None):
            submit(asyncio.sleep(0.02), loop).result()  # the work has begun by then
            raise SystemExit(143)

        monkeypatch.setattr(future, "result", interrupted)
        return future

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", submitted)
