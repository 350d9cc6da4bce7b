"""Parts of a Release that say where its chart comes from and who must have signed it."""

from typing import Annotated, ClassVar

from pilothouse.api.meta import Rule, Wire, described


class SecretReference(Wire, frozen=True):
    """A Secret on the management cluster."""

    name: Annotated[str, described("Name of the Secret.")]
    namespace: Annotated[str, described("Namespace of the Secret.")] = ""


class GitReference(Wire, frozen=True):
    """Which commit is meant; nothing means the default branch."""

    RULES: ClassVar = (
        Rule(
            "[has(self.branch) || has(self.commit), has(self.tag), has(self.semver)].filter(x, x).size() <= 1",
            "give one of branch, tag, semver and commit; only branch and commit go together",
        ),
    )

    branch: Annotated[str, described("A branch; its newest commit.")] = ""
    tag: Annotated[str, described("A tag.")] = ""
    semver: Annotated[str, described("A range such as ~1.2: the highest tag in it.")] = ""
    commit: Annotated[
        str, described("A commit, in full; branch may say where it is.", pattern="^[a-f0-9]{40}$")
    ] = ""


class GitSpec(Wire, frozen=True):
    """A chart in a git repository."""

    url: Annotated[
        str, described("https://…, ssh://user@host/… or user@host:path of the repository.")
    ]
    ref: Annotated[
        GitReference | None,
        described("Which commit; default the default branch's. spec.upgrade decides on moves."),
    ] = None
    path: Annotated[str, described("The chart's directory in the repository.")] = ""
    secret_ref: Annotated[
        SecretReference | None,
        described(
            "A Secret for the repository: username and password, bearerToken, or identity (an SSH "
            "private key; password is its passphrase) and known_hosts."
        ),
    ] = None


class VerifySpec(Wire, frozen=True):
    """Who must have signed the chart."""

    provider: Annotated[
        str,
        described(
            "gpg: a provenance file beside the chart; cosign: a signature in the OCI registry.",
            enum=["gpg", "cosign"],
        ),
    ]
    secret_ref: Annotated[
        SecretReference,
        described(
            "A Secret with public keys, one of which must have signed: for gpg every key of it is a "
            "keyring, for cosign every key named *.pub."
        ),
    ]
