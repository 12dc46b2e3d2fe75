"""The steps of one turn, one file or folder per step."""
