"""The studio: the real algorithms, step by step, in the browser.

The page is drawn in the browser and computes nothing. It sends requests over one WebSocket, and one
worker process answers them with the library:

    server      the web server: routes, security checks, WebSocket sessions, uploads
    worker      the process that computes, its queue of requests and its supervisor
    learners    the learners that the page offers, with their parameters
    content     scenes and presets, the user's tables, trees, tuning maps, Python code
    pictures    what the page draws of a fitted learner
    steps       solvers and growing models, step by step
    lessons     scenes with questions whose answers are computed
    static      the page, built from studio-ui

`server` and `worker` know nothing about learning: what they pass on is made by `worker.answers`.
"""
