"""What belongs to the lectures: values and pictures of algorithms at work.

facts/      values behind the pictures of the lectures
pictures/   the pictures of the lectures; margrove.plot has them all
"""
