"""The studio: the real algorithms, step by step, in the browser.

The page is drawn in the browser and computes nothing. Whatever it shows is asked of the library
over one WebSocket, and computed in one child process:

    launching     the link, the terminal, the end
    addresses     sockets, and what browsers call them
    browsers      how the page is opened
    application   routes: the page, uploads, reports, the socket
    guard         who may speak to it at all: the outermost layer
    serving       the server, with everything bounded
    patience      how long a connection may take to say what it wants
    keys          the token of a link, the keys of tabs
    conversations one for each tab: what it asks, in its own words
    messages      how requests and answers look as bytes
    turns         whose request comes next
    foreman       hands requests to the child, one at a time, and ends those that take too long
    child         the process, seen from outside
    workroom      the process, seen from inside
    uploads       tables of the user's
    faults        what is told, and to whom, when we are wrong
    served_reports    reports that were made, each under a name that cannot be guessed

The names above know nothing of learning. What they hand out is in `answers`.
"""
