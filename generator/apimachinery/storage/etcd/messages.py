"""etcd's v3 API, as far as it is called here: the messages and where the calls are.

Names, numbers and types are those of etcd's published service definition (packages ``etcdserverpb`` and ``mvccpb``);
only the fields that are used are listed. The classes are made from the table when this module is imported, so nothing
has to be generated, and no version of a code generator has to match that of the protobuf runtime.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "etcdserverpb"
# message: field:type=number …, going on in indented lines; "*" before a type repeats it, "|" before a field puts it
# into the message's one oneof.
_TABLE = """
ResponseHeader: cluster_id:uint64=1 member_id:uint64=2 revision:int64=3
KeyValue: key:bytes=1 create_revision:int64=2 mod_revision:int64=3 version:int64=4 value:bytes=5 lease:int64=6
Event: type:int32=1 kv:KeyValue=2 prev_kv:KeyValue=3
RangeRequest: key:bytes=1 range_end:bytes=2 limit:int64=3 revision:int64=4 serializable:bool=7
  keys_only:bool=8 count_only:bool=9
RangeResponse: header:ResponseHeader=1 kvs:*KeyValue=2 more:bool=3 count:int64=4
PutRequest: key:bytes=1 value:bytes=2 lease:int64=3
PutResponse: header:ResponseHeader=1
DeleteRangeRequest: key:bytes=1 range_end:bytes=2
DeleteRangeResponse: header:ResponseHeader=1 deleted:int64=2
RequestOp: |request_range:RangeRequest=1 |request_put:PutRequest=2 |request_delete_range:DeleteRangeRequest=3
ResponseOp: |response_range:RangeResponse=1 |response_put:PutResponse=2 |response_delete_range:DeleteRangeResponse=3
Compare: result:int32=1 target:int32=2 key:bytes=3 |version:int64=4 |create_revision:int64=5 |mod_revision:int64=6
TxnRequest: compare:*Compare=1 success:*RequestOp=2 failure:*RequestOp=3
TxnResponse: header:ResponseHeader=1 succeeded:bool=2 responses:*ResponseOp=3
CompactionRequest: revision:int64=1 physical:bool=2
CompactionResponse: header:ResponseHeader=1
WatchCreateRequest: key:bytes=1 range_end:bytes=2 start_revision:int64=3 progress_notify:bool=4 prev_kv:bool=6
  fragment:bool=8
WatchProgressRequest:
WatchRequest: |create_request:WatchCreateRequest=1 |progress_request:WatchProgressRequest=3
WatchResponse: header:ResponseHeader=1 watch_id:int64=2 created:bool=3 canceled:bool=4 compact_revision:int64=5
  cancel_reason:string=6 fragment:bool=7 events:*Event=11
LeaseGrantRequest: TTL:int64=1 ID:int64=2
LeaseGrantResponse: header:ResponseHeader=1 ID:int64=2 TTL:int64=3 error:string=4
StatusRequest:
StatusResponse: header:ResponseHeader=1 version:string=2 dbSize:int64=3 leader:uint64=4
  errors:*string=8 isLearner:bool=10
SnapshotRequest:
SnapshotResponse: header:ResponseHeader=1 remaining_bytes:uint64=2 blob:bytes=3
"""
_SCALARS = {
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,  # an enum, on the wire
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "uint64": descriptor_pb2.FieldDescriptorProto.TYPE_UINT64,
}


def _add_field(message: Any, described: str) -> None:
    name, _, rest = described.partition(":")
    type_name, _, number = rest.partition("=")
    field = message.field.add()
    field.name, field.number = name.lstrip("|"), int(number)
    field.label = field.LABEL_REPEATED if type_name.startswith("*") else field.LABEL_OPTIONAL
    if name.startswith("|"):
        if not message.oneof_decl:
            message.oneof_decl.add().name = "one"
        field.oneof_index = 0
    type_name = type_name.lstrip("*")
    if type_name in _SCALARS:
        field.type = _SCALARS[type_name]
    else:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{type_name}"


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="etcd.proto", package=_PACKAGE, syntax="proto3")
    for line in _TABLE.strip().replace("\n  ", " ").splitlines():
        name, _, fields = line.partition(":")
        message = file.message_type.add()
        message.name = name
        for described in fields.split():
            _add_field(message, described)
    pool = (
        descriptor_pool.DescriptorPool()
    )  # of its own: others may have the whole definition in the default one
    pool.Add(file)
    return {
        message.name: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"{_PACKAGE}.{message.name}")
        )
        for message in file.message_type
    }


_made = _classes()
KeyValue: Any = _made["KeyValue"]
RangeRequest: Any = _made["RangeRequest"]
RangeResponse: Any = _made["RangeResponse"]
PutRequest: Any = _made["PutRequest"]
DeleteRangeRequest: Any = _made["DeleteRangeRequest"]
RequestOp: Any = _made["RequestOp"]
Compare: Any = _made["Compare"]
TxnRequest: Any = _made["TxnRequest"]
TxnResponse: Any = _made["TxnResponse"]
CompactionRequest: Any = _made["CompactionRequest"]
CompactionResponse: Any = _made["CompactionResponse"]
WatchCreateRequest: Any = _made["WatchCreateRequest"]
WatchProgressRequest: Any = _made["WatchProgressRequest"]
WatchRequest: Any = _made["WatchRequest"]
WatchResponse: Any = _made["WatchResponse"]
LeaseGrantRequest: Any = _made["LeaseGrantRequest"]
LeaseGrantResponse: Any = _made["LeaseGrantResponse"]
StatusRequest: Any = _made["StatusRequest"]
StatusResponse: Any = _made["StatusResponse"]
SnapshotRequest: Any = _made["SnapshotRequest"]
SnapshotResponse: Any = _made["SnapshotResponse"]

RANGE = ("/etcdserverpb.KV/Range", RangeRequest, RangeResponse)
TXN = ("/etcdserverpb.KV/Txn", TxnRequest, TxnResponse)
COMPACT = ("/etcdserverpb.KV/Compact", CompactionRequest, CompactionResponse)
WATCH = ("/etcdserverpb.Watch/Watch", WatchRequest, WatchResponse)
GRANT = ("/etcdserverpb.Lease/LeaseGrant", LeaseGrantRequest, LeaseGrantResponse)
STATUS = ("/etcdserverpb.Maintenance/Status", StatusRequest, StatusResponse)
SNAPSHOT = ("/etcdserverpb.Maintenance/Snapshot", SnapshotRequest, SnapshotResponse)

EQUAL = 0
VERSION, MOD = 0, 2
DELETE = 1


def compared(key: bytes, *, mod: int) -> Any:
    """The condition that a key was last written at a revision, 0 for one that does not live."""
    return Compare(result=EQUAL, target=MOD, key=key, mod_revision=mod)
