"""Charts, where they are and what is found there: core values to protobuf and back."""

from pilothouse.core.access import Access
from pilothouse.core.desired import ChartAsk
from pilothouse.core.git import GitAsk
from pilothouse.core.versions import Found
from pilothouse.engine.codec import fault
from pilothouse.engine.v1 import engine_pb2 as pb


def chart_source(chart: ChartAsk) -> pb.ChartSource:
    """Say where a chart comes from."""
    access = chart.access
    return pb.ChartSource(
        repository=chart.repository,
        name=chart.name,
        version=chart.version,
        url=chart.url,
        digest=chart.digest,
        plain_http=chart.plain_http,
        insecure_skip_tls_verify=chart.insecure_skip_tls_verify,
        inline=chart.inline,
        expected=chart.expected,
        username=access.username,
        password=access.password,
        bearer_token=access.bearer_token,
        docker_config=access.docker_config.encode(),
        client_certificate=access.client_certificate.encode(),
        client_key=access.client_key.encode(),
        ca_bundle=access.ca_bundle.encode(),
        git=_git_source(chart.git, access) if chart.git else None,
        verify=_verification(access),
    )


def _git_source(asked: GitAsk, access: Access) -> pb.GitSource:
    kind, _, value = asked.reference.partition(" ")
    # A commit is all that is left of a tag or a range it was found by; a branch may be needed to find it.
    named = {kind: value} if value and (kind == "branch" or not asked.commit) else {}
    return pb.GitSource(
        url=asked.url,
        commit=asked.commit,
        path=asked.path,
        private_key=access.private_key.encode(),
        passphrase=access.passphrase,
        known_hosts=access.known_hosts.encode(),
        **named,
    )


def _verification(access: Access) -> pb.Verification | None:
    if not access.keyrings and not access.public_keys:
        return None
    return pb.Verification(keyrings=access.keyrings, public_keys=access.public_keys)


def found(answer: pb.FindVersionsReply.Answer) -> Found:
    """Read what a repository has."""
    return Found(
        version=answer.version,
        held_fits=answer.held_fits,
        newer=answer.newer,
        held_digest=answer.held_digest,
        tag=answer.tag,
        fault=fault(answer.fault) if answer.HasField("fault") else None,
    )
