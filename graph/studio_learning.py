"""The bare learning graph for LangGraph Studio: a sweep of the settings' tenant, or of the one in the input."""

from recuerdo.graph.learning import build_learning_graph
from recuerdo.graph.studio import LazyServices

graph = build_learning_graph(LazyServices())
