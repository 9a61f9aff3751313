"""A real Kubernetes control plane for the tests: real API servers, controllers, schedulers and Kueue, on loopback.

What belongs here: building and starting it, a small client that needs no Kubernetes package, objects that tests make,
and the doubles of what is not real: the kubelet (kwok's stages) and the cloud with Cluster API's controllers (`cloud`).
What doesn't: tests, and anything that the controller itself uses.
"""
