"""Frontend tasks: a web page, described by a person who has it in mind and scored by how similar it looks."""
