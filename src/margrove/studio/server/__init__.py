"""The web server of the studio: routes, security checks, WebSocket sessions and uploads.

addresses            the addresses of the studio: loopback or not, a free port, bound sockets
application          the routes of the studio: page, health, uploads, reports and the WebSocket
browsers             opens the page in a browser, by a private file that redirects to the link
internal_errors      errors that are bugs of the studio: printed without data, with a code
launching            starts the server for the command line, prints links to it, and ends it
messages             the messages between the page and the studio
security             the outermost layer of the server: checks requests, adds security headers
served_reports       reports of this session, each under a name that cannot be guessed
serving              uvicorn without logs, with limits of sizes, connections and times
tab_keys             the token of a link, which opens one tab, and the keys with which open tabs
                     come back
uploads              uploaded tables: written to a private folder as they arrive
websocket_sessions   one WebSocket session for each tab
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
