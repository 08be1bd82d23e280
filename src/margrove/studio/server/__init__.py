"""The web server of the studio: routes, security checks, WebSocket sessions and uploads."""
