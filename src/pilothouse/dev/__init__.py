"""DOOR: development clusters, real control planes run as processes on this machine.

Owns finding their programs, starting, finding again and stopping them. The Go supervisor
(`devcluster up`) does its own certificates and readiness, so nothing here talks to Kubernetes.
"""
