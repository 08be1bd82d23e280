"""The server of the studio: routes, guards, sockets, uploads."""
