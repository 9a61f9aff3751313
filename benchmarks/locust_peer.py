"""A Locust user that posts the same request as the generator's benchmark does, as fast a client as Locust has."""

from __future__ import annotations

from locust import FastHttpUser, constant_throughput, task

EACH_RPS = 25.0  # of a user; a user waits for its answer, so many are needed


class Poster(FastHttpUser):
    """Posts at a constant rate, unless its answers are late."""

    wait_time = constant_throughput(EACH_RPS)

    @task
    def post(self) -> None:
        """One request."""
        self.client.post("/v1", data=b'{"prompt":"x"}', headers={"Content-Type": "application/json"})
