from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WatchMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLUSTER: _ClassVar[WatchMode]
    NAMESPACE: _ClassVar[WatchMode]
    POLL: _ClassVar[WatchMode]
CLUSTER: WatchMode
NAMESPACE: WatchMode
POLL: WatchMode

class Fault(_message.Message):
    __slots__ = ("kind", "message", "http_status")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[Fault.Kind]
        INVALID: _ClassVar[Fault.Kind]
        NOT_FOUND: _ClassVar[Fault.Kind]
        ALREADY_EXISTS: _ClassVar[Fault.Kind]
        CONFLICT: _ClassVar[Fault.Kind]
        FORBIDDEN: _ClassVar[Fault.Kind]
        UNAUTHORIZED: _ClassVar[Fault.Kind]
        REJECTED: _ClassVar[Fault.Kind]
        UNREACHABLE: _ClassVar[Fault.Kind]
        NAMESPACE_MISSING: _ClassVar[Fault.Kind]
        NAMESPACE_TERMINATING: _ClassVar[Fault.Kind]
        CHART_NOT_FOUND: _ClassVar[Fault.Kind]
        CHART_UNAVAILABLE: _ClassVar[Fault.Kind]
        CHART_INVALID: _ClassVar[Fault.Kind]
        RENDER: _ClassVar[Fault.Kind]
        VALUES: _ClassVar[Fault.Kind]
        BUSY: _ClassVar[Fault.Kind]
        TIMEOUT: _ClassVar[Fault.Kind]
        CANCELLED: _ClassVar[Fault.Kind]
        HOOK: _ClassVar[Fault.Kind]
        UNKNOWN_CLUSTER: _ClassVar[Fault.Kind]
        UNKNOWN_CHART: _ClassVar[Fault.Kind]
        CHART_NOT_VERIFIED: _ClassVar[Fault.Kind]
    UNKNOWN: Fault.Kind
    INVALID: Fault.Kind
    NOT_FOUND: Fault.Kind
    ALREADY_EXISTS: Fault.Kind
    CONFLICT: Fault.Kind
    FORBIDDEN: Fault.Kind
    UNAUTHORIZED: Fault.Kind
    REJECTED: Fault.Kind
    UNREACHABLE: Fault.Kind
    NAMESPACE_MISSING: Fault.Kind
    NAMESPACE_TERMINATING: Fault.Kind
    CHART_NOT_FOUND: Fault.Kind
    CHART_UNAVAILABLE: Fault.Kind
    CHART_INVALID: Fault.Kind
    RENDER: Fault.Kind
    VALUES: Fault.Kind
    BUSY: Fault.Kind
    TIMEOUT: Fault.Kind
    CANCELLED: Fault.Kind
    HOOK: Fault.Kind
    UNKNOWN_CLUSTER: Fault.Kind
    UNKNOWN_CHART: Fault.Kind
    CHART_NOT_VERIFIED: Fault.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HTTP_STATUS_FIELD_NUMBER: _ClassVar[int]
    kind: Fault.Kind
    message: str
    http_status: int
    def __init__(self, kind: _Optional[_Union[Fault.Kind, str]] = ..., message: _Optional[str] = ..., http_status: _Optional[int] = ...) -> None: ...

class HelloRequest(_message.Message):
    __slots__ = ("contract",)
    CONTRACT_FIELD_NUMBER: _ClassVar[int]
    contract: int
    def __init__(self, contract: _Optional[int] = ...) -> None: ...

class HelloReply(_message.Message):
    __slots__ = ("contract", "version", "helm_version")
    CONTRACT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    HELM_VERSION_FIELD_NUMBER: _ClassVar[int]
    contract: int
    version: str
    helm_version: str
    def __init__(self, contract: _Optional[int] = ..., version: _Optional[str] = ..., helm_version: _Optional[str] = ...) -> None: ...

class ConnectRequest(_message.Message):
    __slots__ = ("kubeconfig", "in_cluster", "trusted", "context", "impersonate", "user_agent", "identity")
    KUBECONFIG_FIELD_NUMBER: _ClassVar[int]
    IN_CLUSTER_FIELD_NUMBER: _ClassVar[int]
    TRUSTED_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    IMPERSONATE_FIELD_NUMBER: _ClassVar[int]
    USER_AGENT_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    kubeconfig: bytes
    in_cluster: bool
    trusted: bool
    context: str
    impersonate: Impersonation
    user_agent: str
    identity: Identity
    def __init__(self, kubeconfig: _Optional[bytes] = ..., in_cluster: _Optional[bool] = ..., trusted: _Optional[bool] = ..., context: _Optional[str] = ..., impersonate: _Optional[_Union[Impersonation, _Mapping]] = ..., user_agent: _Optional[str] = ..., identity: _Optional[_Union[Identity, _Mapping]] = ...) -> None: ...

class Identity(_message.Message):
    __slots__ = ("type", "credentials", "injected")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CREDENTIALS_FIELD_NUMBER: _ClassVar[int]
    INJECTED_FIELD_NUMBER: _ClassVar[int]
    type: str
    credentials: bytes
    injected: bool
    def __init__(self, type: _Optional[str] = ..., credentials: _Optional[bytes] = ..., injected: _Optional[bool] = ...) -> None: ...

class Impersonation(_message.Message):
    __slots__ = ("user", "groups")
    USER_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    user: str
    groups: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, user: _Optional[str] = ..., groups: _Optional[_Iterable[str]] = ...) -> None: ...

class ConnectReply(_message.Message):
    __slots__ = ("cluster", "server")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    server: str
    def __init__(self, cluster: _Optional[str] = ..., server: _Optional[str] = ...) -> None: ...

class Resource(_message.Message):
    __slots__ = ("group", "version", "plural", "kind")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PLURAL_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    group: str
    version: str
    plural: str
    kind: str
    def __init__(self, group: _Optional[str] = ..., version: _Optional[str] = ..., plural: _Optional[str] = ..., kind: _Optional[str] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("cluster", "resource", "namespace", "label_selector", "field_selector", "metadata_only")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    LABEL_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    FIELD_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    METADATA_ONLY_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    resource: Resource
    namespace: str
    label_selector: str
    field_selector: str
    metadata_only: bool
    def __init__(self, cluster: _Optional[str] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., namespace: _Optional[str] = ..., label_selector: _Optional[str] = ..., field_selector: _Optional[str] = ..., metadata_only: _Optional[bool] = ...) -> None: ...

class WatchBatch(_message.Message):
    __slots__ = ("changes", "reset", "synced", "fault", "recovered")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PUT: _ClassVar[WatchBatch.Type]
        GONE: _ClassVar[WatchBatch.Type]
    PUT: WatchBatch.Type
    GONE: WatchBatch.Type
    class Change(_message.Message):
        __slots__ = ("type", "object")
        TYPE_FIELD_NUMBER: _ClassVar[int]
        OBJECT_FIELD_NUMBER: _ClassVar[int]
        type: WatchBatch.Type
        object: bytes
        def __init__(self, type: _Optional[_Union[WatchBatch.Type, str]] = ..., object: _Optional[bytes] = ...) -> None: ...
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    SYNCED_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    RECOVERED_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[WatchBatch.Change]
    reset: bool
    synced: bool
    fault: Fault
    recovered: bool
    def __init__(self, changes: _Optional[_Iterable[_Union[WatchBatch.Change, _Mapping]]] = ..., reset: _Optional[bool] = ..., synced: _Optional[bool] = ..., fault: _Optional[_Union[Fault, _Mapping]] = ..., recovered: _Optional[bool] = ...) -> None: ...

class ObjectCall(_message.Message):
    __slots__ = ("id", "get", "create", "patch", "delete", "review", "watch", "cancel")
    ID_FIELD_NUMBER: _ClassVar[int]
    GET_FIELD_NUMBER: _ClassVar[int]
    CREATE_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    REVIEW_FIELD_NUMBER: _ClassVar[int]
    WATCH_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    id: int
    get: GetRequest
    create: CreateRequest
    patch: PatchRequest
    delete: DeleteRequest
    review: ReviewRequest
    watch: WatchRequest
    cancel: bool
    def __init__(self, id: _Optional[int] = ..., get: _Optional[_Union[GetRequest, _Mapping]] = ..., create: _Optional[_Union[CreateRequest, _Mapping]] = ..., patch: _Optional[_Union[PatchRequest, _Mapping]] = ..., delete: _Optional[_Union[DeleteRequest, _Mapping]] = ..., review: _Optional[_Union[ReviewRequest, _Mapping]] = ..., watch: _Optional[_Union[WatchRequest, _Mapping]] = ..., cancel: _Optional[bool] = ...) -> None: ...

class ObjectAnswer(_message.Message):
    __slots__ = ("id", "object", "fault", "batch")
    ID_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    id: int
    object: bytes
    fault: Fault
    batch: WatchBatch
    def __init__(self, id: _Optional[int] = ..., object: _Optional[bytes] = ..., fault: _Optional[_Union[Fault, _Mapping]] = ..., batch: _Optional[_Union[WatchBatch, _Mapping]] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("cluster", "resource", "namespace", "name", "metadata_only")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    METADATA_ONLY_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    resource: Resource
    namespace: str
    name: str
    metadata_only: bool
    def __init__(self, cluster: _Optional[str] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., metadata_only: _Optional[bool] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("cluster", "resource", "namespace", "label_selector", "field_selector", "metadata_only")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    LABEL_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    FIELD_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    METADATA_ONLY_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    resource: Resource
    namespace: str
    label_selector: str
    field_selector: str
    metadata_only: bool
    def __init__(self, cluster: _Optional[str] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., namespace: _Optional[str] = ..., label_selector: _Optional[str] = ..., field_selector: _Optional[str] = ..., metadata_only: _Optional[bool] = ...) -> None: ...

class ListPage(_message.Message):
    __slots__ = ("objects",)
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    objects: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, objects: _Optional[_Iterable[bytes]] = ...) -> None: ...

class CreateRequest(_message.Message):
    __slots__ = ("cluster", "resource", "namespace", "object", "dry_run")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    resource: Resource
    namespace: str
    object: bytes
    dry_run: bool
    def __init__(self, cluster: _Optional[str] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., namespace: _Optional[str] = ..., object: _Optional[bytes] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class PatchRequest(_message.Message):
    __slots__ = ("cluster", "resource", "namespace", "name", "subresource", "type", "patch", "field_manager", "force", "dry_run")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MERGE: _ClassVar[PatchRequest.Type]
        APPLY: _ClassVar[PatchRequest.Type]
        JSON: _ClassVar[PatchRequest.Type]
    MERGE: PatchRequest.Type
    APPLY: PatchRequest.Type
    JSON: PatchRequest.Type
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUBRESOURCE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    FIELD_MANAGER_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    resource: Resource
    namespace: str
    name: str
    subresource: str
    type: PatchRequest.Type
    patch: bytes
    field_manager: str
    force: bool
    dry_run: bool
    def __init__(self, cluster: _Optional[str] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., subresource: _Optional[str] = ..., type: _Optional[_Union[PatchRequest.Type, str]] = ..., patch: _Optional[bytes] = ..., field_manager: _Optional[str] = ..., force: _Optional[bool] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("cluster", "resource", "namespace", "name", "uid", "propagation")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    PROPAGATION_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    resource: Resource
    namespace: str
    name: str
    uid: str
    propagation: str
    def __init__(self, cluster: _Optional[str] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ..., propagation: _Optional[str] = ...) -> None: ...

class ReviewRequest(_message.Message):
    __slots__ = ("cluster", "resource", "object")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    resource: Resource
    object: bytes
    def __init__(self, cluster: _Optional[str] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., object: _Optional[bytes] = ...) -> None: ...

class ChartSource(_message.Message):
    __slots__ = ("repository", "name", "version", "url", "digest", "username", "password", "insecure_skip_tls_verify", "plain_http", "ca_bundle", "inline", "bearer_token", "docker_config", "client_certificate", "client_key", "expected", "git", "verify")
    REPOSITORY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    USERNAME_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    INSECURE_SKIP_TLS_VERIFY_FIELD_NUMBER: _ClassVar[int]
    PLAIN_HTTP_FIELD_NUMBER: _ClassVar[int]
    CA_BUNDLE_FIELD_NUMBER: _ClassVar[int]
    INLINE_FIELD_NUMBER: _ClassVar[int]
    BEARER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    DOCKER_CONFIG_FIELD_NUMBER: _ClassVar[int]
    CLIENT_CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    CLIENT_KEY_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    GIT_FIELD_NUMBER: _ClassVar[int]
    VERIFY_FIELD_NUMBER: _ClassVar[int]
    repository: str
    name: str
    version: str
    url: str
    digest: str
    username: str
    password: str
    insecure_skip_tls_verify: bool
    plain_http: bool
    ca_bundle: bytes
    inline: bytes
    bearer_token: str
    docker_config: bytes
    client_certificate: bytes
    client_key: bytes
    expected: str
    git: GitSource
    verify: Verification
    def __init__(self, repository: _Optional[str] = ..., name: _Optional[str] = ..., version: _Optional[str] = ..., url: _Optional[str] = ..., digest: _Optional[str] = ..., username: _Optional[str] = ..., password: _Optional[str] = ..., insecure_skip_tls_verify: _Optional[bool] = ..., plain_http: _Optional[bool] = ..., ca_bundle: _Optional[bytes] = ..., inline: _Optional[bytes] = ..., bearer_token: _Optional[str] = ..., docker_config: _Optional[bytes] = ..., client_certificate: _Optional[bytes] = ..., client_key: _Optional[bytes] = ..., expected: _Optional[str] = ..., git: _Optional[_Union[GitSource, _Mapping]] = ..., verify: _Optional[_Union[Verification, _Mapping]] = ...) -> None: ...

class GitSource(_message.Message):
    __slots__ = ("url", "branch", "tag", "semver", "commit", "path", "private_key", "passphrase", "known_hosts")
    URL_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    SEMVER_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_KEY_FIELD_NUMBER: _ClassVar[int]
    PASSPHRASE_FIELD_NUMBER: _ClassVar[int]
    KNOWN_HOSTS_FIELD_NUMBER: _ClassVar[int]
    url: str
    branch: str
    tag: str
    semver: str
    commit: str
    path: str
    private_key: bytes
    passphrase: str
    known_hosts: bytes
    def __init__(self, url: _Optional[str] = ..., branch: _Optional[str] = ..., tag: _Optional[str] = ..., semver: _Optional[str] = ..., commit: _Optional[str] = ..., path: _Optional[str] = ..., private_key: _Optional[bytes] = ..., passphrase: _Optional[str] = ..., known_hosts: _Optional[bytes] = ...) -> None: ...

class Verification(_message.Message):
    __slots__ = ("keyrings", "public_keys")
    KEYRINGS_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_KEYS_FIELD_NUMBER: _ClassVar[int]
    keyrings: _containers.RepeatedScalarFieldContainer[bytes]
    public_keys: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, keyrings: _Optional[_Iterable[bytes]] = ..., public_keys: _Optional[_Iterable[bytes]] = ...) -> None: ...

class ResolveChartRequest(_message.Message):
    __slots__ = ("source",)
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    source: ChartSource
    def __init__(self, source: _Optional[_Union[ChartSource, _Mapping]] = ...) -> None: ...

class ResolveChartReply(_message.Message):
    __slots__ = ("name", "version", "digest", "app_version", "description", "has_crds", "type", "republished", "warnings")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    APP_VERSION_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    HAS_CRDS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    REPUBLISHED_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    digest: str
    app_version: str
    description: str
    has_crds: bool
    type: str
    republished: str
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., digest: _Optional[str] = ..., app_version: _Optional[str] = ..., description: _Optional[str] = ..., has_crds: _Optional[bool] = ..., type: _Optional[str] = ..., republished: _Optional[str] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class FindVersionsRequest(_message.Message):
    __slots__ = ("source", "queries", "max_age_ms")
    class Query(_message.Message):
        __slots__ = ("name", "version", "held")
        NAME_FIELD_NUMBER: _ClassVar[int]
        VERSION_FIELD_NUMBER: _ClassVar[int]
        HELD_FIELD_NUMBER: _ClassVar[int]
        name: str
        version: str
        held: str
        def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., held: _Optional[str] = ...) -> None: ...
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    MAX_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    source: ChartSource
    queries: _containers.RepeatedCompositeFieldContainer[FindVersionsRequest.Query]
    max_age_ms: int
    def __init__(self, source: _Optional[_Union[ChartSource, _Mapping]] = ..., queries: _Optional[_Iterable[_Union[FindVersionsRequest.Query, _Mapping]]] = ..., max_age_ms: _Optional[int] = ...) -> None: ...

class FindVersionsReply(_message.Message):
    __slots__ = ("answers",)
    class Answer(_message.Message):
        __slots__ = ("version", "digest", "held_fits", "newer", "held_digest", "fault", "tag")
        VERSION_FIELD_NUMBER: _ClassVar[int]
        DIGEST_FIELD_NUMBER: _ClassVar[int]
        HELD_FITS_FIELD_NUMBER: _ClassVar[int]
        NEWER_FIELD_NUMBER: _ClassVar[int]
        HELD_DIGEST_FIELD_NUMBER: _ClassVar[int]
        FAULT_FIELD_NUMBER: _ClassVar[int]
        TAG_FIELD_NUMBER: _ClassVar[int]
        version: str
        digest: str
        held_fits: bool
        newer: bool
        held_digest: str
        fault: Fault
        tag: str
        def __init__(self, version: _Optional[str] = ..., digest: _Optional[str] = ..., held_fits: _Optional[bool] = ..., newer: _Optional[bool] = ..., held_digest: _Optional[str] = ..., fault: _Optional[_Union[Fault, _Mapping]] = ..., tag: _Optional[str] = ...) -> None: ...
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[FindVersionsReply.Answer]
    def __init__(self, answers: _Optional[_Iterable[_Union[FindVersionsReply.Answer, _Mapping]]] = ...) -> None: ...

class ComposeRequest(_message.Message):
    __slots__ = ("documents", "assignments", "patches")
    class Document(_message.Message):
        __slots__ = ("origin", "text")
        ORIGIN_FIELD_NUMBER: _ClassVar[int]
        TEXT_FIELD_NUMBER: _ClassVar[int]
        origin: str
        text: str
        def __init__(self, origin: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...
    class Assignment(_message.Message):
        __slots__ = ("origin", "name", "value")
        ORIGIN_FIELD_NUMBER: _ClassVar[int]
        NAME_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        origin: str
        name: str
        value: str
        def __init__(self, origin: _Optional[str] = ..., name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    PATCHES_FIELD_NUMBER: _ClassVar[int]
    documents: _containers.RepeatedCompositeFieldContainer[ComposeRequest.Document]
    assignments: _containers.RepeatedCompositeFieldContainer[ComposeRequest.Assignment]
    patches: _containers.RepeatedCompositeFieldContainer[ComposeRequest.Document]
    def __init__(self, documents: _Optional[_Iterable[_Union[ComposeRequest.Document, _Mapping]]] = ..., assignments: _Optional[_Iterable[_Union[ComposeRequest.Assignment, _Mapping]]] = ..., patches: _Optional[_Iterable[_Union[ComposeRequest.Document, _Mapping]]] = ...) -> None: ...

class ComposeReply(_message.Message):
    __slots__ = ("values", "patches_sha", "patches")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    PATCHES_SHA_FIELD_NUMBER: _ClassVar[int]
    PATCHES_FIELD_NUMBER: _ClassVar[int]
    values: bytes
    patches_sha: str
    patches: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, values: _Optional[bytes] = ..., patches_sha: _Optional[str] = ..., patches: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Ref(_message.Message):
    __slots__ = ("api_version", "kind", "namespace", "name")
    API_VERSION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    api_version: str
    kind: str
    namespace: str
    name: str
    def __init__(self, api_version: _Optional[str] = ..., kind: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class RenderRequest(_message.Message):
    __slots__ = ("cluster", "chart_digest", "namespace", "name", "revision", "is_upgrade", "values", "patches")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    CHART_DIGEST_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    IS_UPGRADE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    PATCHES_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    chart_digest: str
    namespace: str
    name: str
    revision: int
    is_upgrade: bool
    values: bytes
    patches: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, cluster: _Optional[str] = ..., chart_digest: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., revision: _Optional[int] = ..., is_upgrade: _Optional[bool] = ..., values: _Optional[bytes] = ..., patches: _Optional[_Iterable[bytes]] = ...) -> None: ...

class RenderReply(_message.Message):
    __slots__ = ("manifest", "hooks", "notes", "crds", "inventory")
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    HOOKS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    CRDS_FIELD_NUMBER: _ClassVar[int]
    INVENTORY_FIELD_NUMBER: _ClassVar[int]
    manifest: str
    hooks: _containers.RepeatedScalarFieldContainer[str]
    notes: str
    crds: _containers.RepeatedScalarFieldContainer[str]
    inventory: _containers.RepeatedCompositeFieldContainer[Ref]
    def __init__(self, manifest: _Optional[str] = ..., hooks: _Optional[_Iterable[str]] = ..., notes: _Optional[str] = ..., crds: _Optional[_Iterable[str]] = ..., inventory: _Optional[_Iterable[_Union[Ref, _Mapping]]] = ...) -> None: ...

class RunRequest(_message.Message):
    __slots__ = ("cluster", "action", "namespace", "name", "chart_digest", "values", "stamp_digest", "stamp_owner", "revision", "wait", "timeout_ms", "skip_crds", "max_history", "take_ownership", "force_conflicts", "description", "labels", "disable_hooks", "preflight", "patches", "chart_annotations", "kustomization", "stamp_source", "around")
    class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ACTION_UNSPECIFIED: _ClassVar[RunRequest.Action]
        INSTALL: _ClassVar[RunRequest.Action]
        UPGRADE: _ClassVar[RunRequest.Action]
        ROLLBACK: _ClassVar[RunRequest.Action]
        UNINSTALL: _ClassVar[RunRequest.Action]
        UNLOCK: _ClassVar[RunRequest.Action]
        TEST: _ClassVar[RunRequest.Action]
    ACTION_UNSPECIFIED: RunRequest.Action
    INSTALL: RunRequest.Action
    UPGRADE: RunRequest.Action
    ROLLBACK: RunRequest.Action
    UNINSTALL: RunRequest.Action
    UNLOCK: RunRequest.Action
    TEST: RunRequest.Action
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ChartAnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CHART_DIGEST_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    STAMP_DIGEST_FIELD_NUMBER: _ClassVar[int]
    STAMP_OWNER_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    SKIP_CRDS_FIELD_NUMBER: _ClassVar[int]
    MAX_HISTORY_FIELD_NUMBER: _ClassVar[int]
    TAKE_OWNERSHIP_FIELD_NUMBER: _ClassVar[int]
    FORCE_CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    DISABLE_HOOKS_FIELD_NUMBER: _ClassVar[int]
    PREFLIGHT_FIELD_NUMBER: _ClassVar[int]
    PATCHES_FIELD_NUMBER: _ClassVar[int]
    CHART_ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    KUSTOMIZATION_FIELD_NUMBER: _ClassVar[int]
    STAMP_SOURCE_FIELD_NUMBER: _ClassVar[int]
    AROUND_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    action: RunRequest.Action
    namespace: str
    name: str
    chart_digest: str
    values: bytes
    stamp_digest: str
    stamp_owner: str
    revision: int
    wait: bool
    timeout_ms: int
    skip_crds: bool
    max_history: int
    take_ownership: bool
    force_conflicts: bool
    description: str
    labels: _containers.ScalarMap[str, str]
    disable_hooks: bool
    preflight: bool
    patches: _containers.RepeatedScalarFieldContainer[bytes]
    chart_annotations: _containers.ScalarMap[str, str]
    kustomization: bytes
    stamp_source: str
    around: Around
    def __init__(self, cluster: _Optional[str] = ..., action: _Optional[_Union[RunRequest.Action, str]] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., chart_digest: _Optional[str] = ..., values: _Optional[bytes] = ..., stamp_digest: _Optional[str] = ..., stamp_owner: _Optional[str] = ..., revision: _Optional[int] = ..., wait: _Optional[bool] = ..., timeout_ms: _Optional[int] = ..., skip_crds: _Optional[bool] = ..., max_history: _Optional[int] = ..., take_ownership: _Optional[bool] = ..., force_conflicts: _Optional[bool] = ..., description: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., disable_hooks: _Optional[bool] = ..., preflight: _Optional[bool] = ..., patches: _Optional[_Iterable[bytes]] = ..., chart_annotations: _Optional[_Mapping[str, str]] = ..., kustomization: _Optional[bytes] = ..., stamp_source: _Optional[str] = ..., around: _Optional[_Union[Around, _Mapping]] = ...) -> None: ...

class Around(_message.Message):
    __slots__ = ("leave", "leave_scaled", "force_rest")
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    LEAVE_SCALED_FIELD_NUMBER: _ClassVar[int]
    FORCE_REST_FIELD_NUMBER: _ClassVar[int]
    leave: _containers.RepeatedCompositeFieldContainer[Exemption]
    leave_scaled: bool
    force_rest: bool
    def __init__(self, leave: _Optional[_Iterable[_Union[Exemption, _Mapping]]] = ..., leave_scaled: _Optional[bool] = ..., force_rest: _Optional[bool] = ...) -> None: ...

class Exemption(_message.Message):
    __slots__ = ("paths", "group", "version", "kind", "namespace", "name")
    PATHS_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    paths: _containers.RepeatedScalarFieldContainer[str]
    group: str
    version: str
    kind: str
    namespace: str
    name: str
    def __init__(self, paths: _Optional[_Iterable[str]] = ..., group: _Optional[str] = ..., version: _Optional[str] = ..., kind: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class RunEvent(_message.Message):
    __slots__ = ("progress", "outcome")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    progress: Progress
    outcome: Outcome
    def __init__(self, progress: _Optional[_Union[Progress, _Mapping]] = ..., outcome: _Optional[_Union[Outcome, _Mapping]] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("phase", "message", "hooks")
    class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PREPARING: _ClassVar[Progress.Phase]
        APPLYING: _ClassVar[Progress.Phase]
        WAITING: _ClassVar[Progress.Phase]
    PREPARING: Progress.Phase
    APPLYING: Progress.Phase
    WAITING: Progress.Phase
    PHASE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HOOKS_FIELD_NUMBER: _ClassVar[int]
    phase: Progress.Phase
    message: str
    hooks: _containers.RepeatedCompositeFieldContainer[HookResult]
    def __init__(self, phase: _Optional[_Union[Progress.Phase, str]] = ..., message: _Optional[str] = ..., hooks: _Optional[_Iterable[_Union[HookResult, _Mapping]]] = ...) -> None: ...

class Outcome(_message.Message):
    __slots__ = ("record", "fault", "inventory", "notes", "logs", "tests", "hooks")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    INVENTORY_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    LOGS_FIELD_NUMBER: _ClassVar[int]
    TESTS_FIELD_NUMBER: _ClassVar[int]
    HOOKS_FIELD_NUMBER: _ClassVar[int]
    record: Record
    fault: Fault
    inventory: _containers.RepeatedCompositeFieldContainer[Ref]
    notes: str
    logs: _containers.RepeatedCompositeFieldContainer[HookLog]
    tests: _containers.RepeatedCompositeFieldContainer[HookResult]
    hooks: _containers.RepeatedCompositeFieldContainer[HookResult]
    def __init__(self, record: _Optional[_Union[Record, _Mapping]] = ..., fault: _Optional[_Union[Fault, _Mapping]] = ..., inventory: _Optional[_Iterable[_Union[Ref, _Mapping]]] = ..., notes: _Optional[str] = ..., logs: _Optional[_Iterable[_Union[HookLog, _Mapping]]] = ..., tests: _Optional[_Iterable[_Union[HookResult, _Mapping]]] = ..., hooks: _Optional[_Iterable[_Union[HookResult, _Mapping]]] = ...) -> None: ...

class HookResult(_message.Message):
    __slots__ = ("hook", "phase", "started_unix_ms", "finished_unix_ms", "events")
    HOOK_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    STARTED_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    hook: str
    phase: str
    started_unix_ms: int
    finished_unix_ms: int
    events: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hook: _Optional[str] = ..., phase: _Optional[str] = ..., started_unix_ms: _Optional[int] = ..., finished_unix_ms: _Optional[int] = ..., events: _Optional[_Iterable[str]] = ...) -> None: ...

class HookLog(_message.Message):
    __slots__ = ("hook", "text", "missing")
    HOOK_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    hook: str
    text: str
    missing: str
    def __init__(self, hook: _Optional[str] = ..., text: _Optional[str] = ..., missing: _Optional[str] = ...) -> None: ...

class ObserveRequest(_message.Message):
    __slots__ = ("cluster", "attend")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    ATTEND_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    attend: _containers.RepeatedCompositeFieldContainer[Attention]
    def __init__(self, cluster: _Optional[str] = ..., attend: _Optional[_Iterable[_Union[Attention, _Mapping]]] = ...) -> None: ...

class Attention(_message.Message):
    __slots__ = ("namespace", "name", "gone", "health_checks", "external", "token", "alone")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    HEALTH_CHECKS_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ALONE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    gone: bool
    health_checks: _containers.RepeatedCompositeFieldContainer[HealthCheck]
    external: _containers.RepeatedCompositeFieldContainer[Ref]
    token: str
    alone: bool
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., gone: _Optional[bool] = ..., health_checks: _Optional[_Iterable[_Union[HealthCheck, _Mapping]]] = ..., external: _Optional[_Iterable[_Union[Ref, _Mapping]]] = ..., token: _Optional[str] = ..., alone: _Optional[bool] = ...) -> None: ...

class HealthCheck(_message.Message):
    __slots__ = ("origin", "api_version", "kind", "current", "failed")
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    API_VERSION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    origin: str
    api_version: str
    kind: str
    current: str
    failed: str
    def __init__(self, origin: _Optional[str] = ..., api_version: _Optional[str] = ..., kind: _Optional[str] = ..., current: _Optional[str] = ..., failed: _Optional[str] = ...) -> None: ...

class CheckExpressionsRequest(_message.Message):
    __slots__ = ("expressions",)
    class Expression(_message.Message):
        __slots__ = ("origin", "text")
        ORIGIN_FIELD_NUMBER: _ClassVar[int]
        TEXT_FIELD_NUMBER: _ClassVar[int]
        origin: str
        text: str
        def __init__(self, origin: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...
    EXPRESSIONS_FIELD_NUMBER: _ClassVar[int]
    expressions: _containers.RepeatedCompositeFieldContainer[CheckExpressionsRequest.Expression]
    def __init__(self, expressions: _Optional[_Iterable[_Union[CheckExpressionsRequest.Expression, _Mapping]]] = ...) -> None: ...

class CheckExpressionsReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Record(_message.Message):
    __slots__ = ("namespace", "name", "revision", "status", "stamp_digest", "stamp_owner", "created_unix_ms", "uid", "chart_name", "chart_version", "description", "deployed_unix_ms", "app_version", "config", "stamp_source")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STAMP_DIGEST_FIELD_NUMBER: _ClassVar[int]
    STAMP_OWNER_FIELD_NUMBER: _ClassVar[int]
    CREATED_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    CHART_NAME_FIELD_NUMBER: _ClassVar[int]
    CHART_VERSION_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    DEPLOYED_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    APP_VERSION_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    STAMP_SOURCE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    revision: int
    status: str
    stamp_digest: str
    stamp_owner: str
    created_unix_ms: int
    uid: str
    chart_name: str
    chart_version: str
    description: str
    deployed_unix_ms: int
    app_version: str
    config: bytes
    stamp_source: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., revision: _Optional[int] = ..., status: _Optional[str] = ..., stamp_digest: _Optional[str] = ..., stamp_owner: _Optional[str] = ..., created_unix_ms: _Optional[int] = ..., uid: _Optional[str] = ..., chart_name: _Optional[str] = ..., chart_version: _Optional[str] = ..., description: _Optional[str] = ..., deployed_unix_ms: _Optional[int] = ..., app_version: _Optional[str] = ..., config: _Optional[bytes] = ..., stamp_source: _Optional[str] = ...) -> None: ...

class ObserveBatch(_message.Message):
    __slots__ = ("records", "objects", "reset", "records_synced", "fault", "recovered", "namespaces")
    class RecordChange(_message.Message):
        __slots__ = ("record", "gone")
        RECORD_FIELD_NUMBER: _ClassVar[int]
        GONE_FIELD_NUMBER: _ClassVar[int]
        record: Record
        gone: bool
        def __init__(self, record: _Optional[_Union[Record, _Mapping]] = ..., gone: _Optional[bool] = ...) -> None: ...
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    RECORDS_SYNCED_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    RECOVERED_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[ObserveBatch.RecordChange]
    objects: _containers.RepeatedCompositeFieldContainer[ReleaseObjects]
    reset: bool
    records_synced: bool
    fault: Fault
    recovered: bool
    namespaces: _containers.RepeatedCompositeFieldContainer[NamespaceSight]
    def __init__(self, records: _Optional[_Iterable[_Union[ObserveBatch.RecordChange, _Mapping]]] = ..., objects: _Optional[_Iterable[_Union[ReleaseObjects, _Mapping]]] = ..., reset: _Optional[bool] = ..., records_synced: _Optional[bool] = ..., fault: _Optional[_Union[Fault, _Mapping]] = ..., recovered: _Optional[bool] = ..., namespaces: _Optional[_Iterable[_Union[NamespaceSight, _Mapping]]] = ...) -> None: ...

class NamespaceSight(_message.Message):
    __slots__ = ("namespace", "synced", "fault")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SYNCED_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    synced: bool
    fault: Fault
    def __init__(self, namespace: _Optional[str] = ..., synced: _Optional[bool] = ..., fault: _Optional[_Union[Fault, _Mapping]] = ...) -> None: ...

class ReleaseObjects(_message.Message):
    __slots__ = ("namespace", "name", "revision", "complete", "states", "external", "watch", "token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_FIELD_NUMBER: _ClassVar[int]
    WATCH_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    revision: int
    complete: bool
    states: _containers.RepeatedCompositeFieldContainer[ObjectState]
    external: _containers.RepeatedCompositeFieldContainer[ObjectState]
    watch: WatchMode
    token: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., revision: _Optional[int] = ..., complete: _Optional[bool] = ..., states: _Optional[_Iterable[_Union[ObjectState, _Mapping]]] = ..., external: _Optional[_Iterable[_Union[ObjectState, _Mapping]]] = ..., watch: _Optional[_Union[WatchMode, str]] = ..., token: _Optional[str] = ...) -> None: ...

class ObjectState(_message.Message):
    __slots__ = ("ref", "state", "message", "generation", "altered", "sight", "scaled")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[ObjectState.State]
        CURRENT: _ClassVar[ObjectState.State]
        IN_PROGRESS: _ClassVar[ObjectState.State]
        FAILED: _ClassVar[ObjectState.State]
        TERMINATING: _ClassVar[ObjectState.State]
        NOT_FOUND: _ClassVar[ObjectState.State]
    UNKNOWN: ObjectState.State
    CURRENT: ObjectState.State
    IN_PROGRESS: ObjectState.State
    FAILED: ObjectState.State
    TERMINATING: ObjectState.State
    NOT_FOUND: ObjectState.State
    REF_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    ALTERED_FIELD_NUMBER: _ClassVar[int]
    SIGHT_FIELD_NUMBER: _ClassVar[int]
    SCALED_FIELD_NUMBER: _ClassVar[int]
    ref: Ref
    state: ObjectState.State
    message: str
    generation: int
    altered: int
    sight: int
    scaled: bool
    def __init__(self, ref: _Optional[_Union[Ref, _Mapping]] = ..., state: _Optional[_Union[ObjectState.State, str]] = ..., message: _Optional[str] = ..., generation: _Optional[int] = ..., altered: _Optional[int] = ..., sight: _Optional[int] = ..., scaled: _Optional[bool] = ...) -> None: ...

class HistoryRequest(_message.Message):
    __slots__ = ("cluster", "namespace", "name", "revision", "with_config")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    WITH_CONFIG_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    namespace: str
    name: str
    revision: int
    with_config: bool
    def __init__(self, cluster: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., revision: _Optional[int] = ..., with_config: _Optional[bool] = ...) -> None: ...

class HistoryReply(_message.Message):
    __slots__ = ("records",)
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[Record]
    def __init__(self, records: _Optional[_Iterable[_Union[Record, _Mapping]]] = ...) -> None: ...

class HttpHeader(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class HttpRequest(_message.Message):
    __slots__ = ("method", "url", "headers", "body", "timeout_ms", "max_reply_bytes", "max_redirects", "ca_bundle", "insecure_skip_tls_verify", "client_certificate", "client_key", "tls_server_name")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_REPLY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_REDIRECTS_FIELD_NUMBER: _ClassVar[int]
    CA_BUNDLE_FIELD_NUMBER: _ClassVar[int]
    INSECURE_SKIP_TLS_VERIFY_FIELD_NUMBER: _ClassVar[int]
    CLIENT_CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    CLIENT_KEY_FIELD_NUMBER: _ClassVar[int]
    TLS_SERVER_NAME_FIELD_NUMBER: _ClassVar[int]
    method: str
    url: str
    headers: _containers.RepeatedCompositeFieldContainer[HttpHeader]
    body: bytes
    timeout_ms: int
    max_reply_bytes: int
    max_redirects: int
    ca_bundle: bytes
    insecure_skip_tls_verify: bool
    client_certificate: bytes
    client_key: bytes
    tls_server_name: str
    def __init__(self, method: _Optional[str] = ..., url: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[HttpHeader, _Mapping]]] = ..., body: _Optional[bytes] = ..., timeout_ms: _Optional[int] = ..., max_reply_bytes: _Optional[int] = ..., max_redirects: _Optional[int] = ..., ca_bundle: _Optional[bytes] = ..., insecure_skip_tls_verify: _Optional[bool] = ..., client_certificate: _Optional[bytes] = ..., client_key: _Optional[bytes] = ..., tls_server_name: _Optional[str] = ...) -> None: ...

class HttpReply(_message.Message):
    __slots__ = ("status", "headers", "body", "truncated")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    status: int
    headers: _containers.RepeatedCompositeFieldContainer[HttpHeader]
    body: bytes
    truncated: bool
    def __init__(self, status: _Optional[int] = ..., headers: _Optional[_Iterable[_Union[HttpHeader, _Mapping]]] = ..., body: _Optional[bytes] = ..., truncated: _Optional[bool] = ...) -> None: ...

class CompareRequest(_message.Message):
    __slots__ = ("cluster", "namespace", "name", "revision", "objects")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    namespace: str
    name: str
    revision: int
    objects: _containers.RepeatedCompositeFieldContainer[Ref]
    def __init__(self, cluster: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., revision: _Optional[int] = ..., objects: _Optional[_Iterable[_Union[Ref, _Mapping]]] = ...) -> None: ...

class CompareReply(_message.Message):
    __slots__ = ("objects",)
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    objects: _containers.RepeatedCompositeFieldContainer[Comparison]
    def __init__(self, objects: _Optional[_Iterable[_Union[Comparison, _Mapping]]] = ...) -> None: ...

class Comparison(_message.Message):
    __slots__ = ("ref", "missing", "expires", "differences", "fault", "scaled")
    REF_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCES_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    SCALED_FIELD_NUMBER: _ClassVar[int]
    ref: Ref
    missing: bool
    expires: bool
    differences: _containers.RepeatedCompositeFieldContainer[Difference]
    fault: Fault
    scaled: bool
    def __init__(self, ref: _Optional[_Union[Ref, _Mapping]] = ..., missing: _Optional[bool] = ..., expires: _Optional[bool] = ..., differences: _Optional[_Iterable[_Union[Difference, _Mapping]]] = ..., fault: _Optional[_Union[Fault, _Mapping]] = ..., scaled: _Optional[bool] = ...) -> None: ...

class Difference(_message.Message):
    __slots__ = ("path", "manager")
    PATH_FIELD_NUMBER: _ClassVar[int]
    MANAGER_FIELD_NUMBER: _ClassVar[int]
    path: str
    manager: str
    def __init__(self, path: _Optional[str] = ..., manager: _Optional[str] = ...) -> None: ...

class RepairRequest(_message.Message):
    __slots__ = ("cluster", "namespace", "name", "revision", "objects")
    class Part(_message.Message):
        __slots__ = ("ref", "leave")
        REF_FIELD_NUMBER: _ClassVar[int]
        LEAVE_FIELD_NUMBER: _ClassVar[int]
        ref: Ref
        leave: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, ref: _Optional[_Union[Ref, _Mapping]] = ..., leave: _Optional[_Iterable[str]] = ...) -> None: ...
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    namespace: str
    name: str
    revision: int
    objects: _containers.RepeatedCompositeFieldContainer[RepairRequest.Part]
    def __init__(self, cluster: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., revision: _Optional[int] = ..., objects: _Optional[_Iterable[_Union[RepairRequest.Part, _Mapping]]] = ...) -> None: ...

class RepairReply(_message.Message):
    __slots__ = ("objects",)
    class Repaired(_message.Message):
        __slots__ = ("ref", "fault")
        REF_FIELD_NUMBER: _ClassVar[int]
        FAULT_FIELD_NUMBER: _ClassVar[int]
        ref: Ref
        fault: Fault
        def __init__(self, ref: _Optional[_Union[Ref, _Mapping]] = ..., fault: _Optional[_Union[Fault, _Mapping]] = ...) -> None: ...
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    objects: _containers.RepeatedCompositeFieldContainer[RepairReply.Repaired]
    def __init__(self, objects: _Optional[_Iterable[_Union[RepairReply.Repaired, _Mapping]]] = ...) -> None: ...
