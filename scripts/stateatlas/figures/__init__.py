"""One module per figure. Each has `TABLES`, the tables it needs, and `draw(tables, settings) -> Figure`."""
