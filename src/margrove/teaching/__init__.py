"""Values and pictures of the lectures, which show algorithms step by step.

facts/      the data behind the pictures of the lectures
pictures/   the pictures of the lectures; margrove.plot has all of them
"""
