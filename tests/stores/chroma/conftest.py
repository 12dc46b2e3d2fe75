import random

import pytest

DIMENSIONS = 16


class NamedEmbedder:
    """An embedder by name alone: the index never embeds."""

    dimensions = DIMENSIONS

    def __init__(self, name="model-a"):
        self.name = name


@pytest.fixture
def embedder():
    return NamedEmbedder


@pytest.fixture
def vector():
    """A vector for a number, always the same one."""

    def make(number, dimensions=DIMENSIONS):
        values = random.Random(number)
        return [values.gauss(0, 1) for _ in range(dimensions)]

    return make
