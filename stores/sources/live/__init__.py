"""Quotes from live services, each an optional extra: crypto (`ccxt`) and US stocks (`alpaca-py`)."""
