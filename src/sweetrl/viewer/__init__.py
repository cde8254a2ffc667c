"""The viewer: all dialogues of runs in a browser, searchable, with the credit of every turn, while they are made.

`sources` finds the record files, `index` keeps a SQLite index of them, `queries` and `dialogues` read it, `pages` and
`app` show it. Record files are only read; the index can be deleted at any time.
"""
