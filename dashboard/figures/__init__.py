"""The figures: results of the client in, plotly figures out; nothing here asks the API or draws on a page."""
