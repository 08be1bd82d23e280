"""A Dask cluster: its workers, waits that end, and fits that are repeated when a worker is lost.

workers   the client, the workers, whether they compute alike, errors of a cluster in plain words
waiting   results of futures, and workers, while there is somebody to wait for
retries   another attempt when a worker is lost
"""
