"""Data: text that is read from files as it is needed, with what is wrong in it counted and named by file and line."""
