"""The ground floor: typed state, plan, blocks, ladder and rounds. Pure; imports nothing else of Recuerdo."""
