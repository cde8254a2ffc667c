"""The stages of the pipeline as functions: settings and files in, a record file out.

Each resumes its output, refuses to mix settings in it, and tells a `Reporter` how far it is. The commands of the same
names parse options, call them and print what they give back.
"""
