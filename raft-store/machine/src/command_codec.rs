//! Commands and batches as bytes and back.
//!
//! Owns the layout of what the log holds: the head of a batch and of a command is written by hand, so that reading it is cheap and
//! a command can be passed on without being decoded. The bodies are [`crate::codec`]'s.

use bytes::{BufMut, Bytes, BytesMut};

use crate::codec::{CONFIG, CodecError, FORMAT_VERSION, LARGEST_ELEMENT, Reader, decode_whole};
use crate::types::{Action, Batch, Command, RequestId, WriteOp};

const _: () = assert!(size_of::<crate::types::Step>() <= LARGEST_ELEMENT);
const _: () = assert!(size_of::<crate::types::StepReply>() <= LARGEST_ELEMENT);
const _: () = assert!(size_of::<crate::types::BulkItem>() <= LARGEST_ELEMENT);
const _: () = assert!(size_of::<crate::types::NewTask>() <= LARGEST_ELEMENT);
const _: () = assert!(size_of::<crate::types::ClaimedTask>() <= LARGEST_ELEMENT);
const _: () = assert!(size_of::<crate::types::Reply>() <= LARGEST_ELEMENT);
const _: () = assert!(size_of::<crate::keyspace::audit::AuditLine>() <= LARGEST_ELEMENT);

/// What stands before the part of a command that [`judged_part`] gives: version byte and access_revision.
const COMMAND_HEAD_BYTES: usize = 1 + 8;

/// Encodes one command, once, on the node that took it from the client; it stays in this form until apply: version byte, access_revision
/// as eight bytes little endian ([`Command::NO_ACCESS_REVISION`] for none), the rest as a record.
pub fn encode_command(command: &Command) -> Bytes {
    let Command { request_id, principal, action, access_revision } = command;
    let id = request_id.as_ref().map_or(0, |id| id.0.len());
    let op = match action {
        Action::Write(op) => bytes_of(op),
        Action::Bulk(ops) => ops.iter().map(|op| 16 + bytes_of(op)).sum(),
        _ => 0,
    };
    // The rest, numbers and lengths, takes at most 9 bytes each.
    let mut bytes = Vec::with_capacity(72 + id + principal.len() + op);
    bytes.push(FORMAT_VERSION);
    bytes.extend_from_slice(&access_revision.unwrap_or(Command::NO_ACCESS_REVISION).to_le_bytes());
    bincode::encode_into_std_write((request_id, principal, action), &mut bytes, CONFIG).expect("encoding into memory");
    Bytes::from(bytes)
}

/// The part of an encoded command that makes it what it is, whenever it was authorised: all but version and access_revision.
pub fn judged_part(encoded: &[u8]) -> &[u8] {
    encoded.get(COMMAND_HEAD_BYTES..).unwrap_or_default()
}

/// What key and value of a write take.
fn bytes_of(op: &WriteOp) -> usize {
    op.key.as_bytes().len() + op.change.data().len()
}

/// Reverses [`encode_command`].
pub fn decode_command(bytes: &[u8]) -> Result<Command, CodecError> {
    let mut reader = Reader { bytes, at: 0 };
    let written = reader.version()?;
    let access_revision = Some(reader.u64()?).filter(|access_revision| *access_revision != Command::NO_ACCESS_REVISION);
    let (request_id, principal, action): (Option<RequestId>, String, Action) =
        decode_whole(judged_part(bytes), written)?;
    Ok(Command { request_id, principal, action, access_revision })
}

/// Frames a batch: version, clocks, seed, count, then each command with its length. Commands are copied, not
/// re-encoded.
pub fn encode_batch(batch: &Batch) -> Bytes {
    let body: usize = batch.commands.iter().map(|command| 4 + command.len()).sum();
    let mut bytes = BytesMut::with_capacity(1 + 8 + 8 + 16 + 4 + body);
    bytes.put_u8(FORMAT_VERSION);
    bytes.put_u64_le(batch.clock);
    bytes.put_u64_le(batch.wall);
    bytes.put_slice(&batch.seed);
    bytes.put_u32_le(u32::try_from(batch.commands.len()).expect("a batch is bounded by limits::BATCH_COMMANDS_MAX"));
    for command in &batch.commands {
        bytes.put_u32_le(u32::try_from(command.len()).expect("a command is bounded by limits::COMMAND_BYTES_MAX"));
        bytes.put_slice(command);
    }
    bytes.freeze()
}

/// Reverses [`encode_batch`]; the commands share the given bytes.
pub fn decode_batch(bytes: &Bytes) -> Result<Batch, CodecError> {
    let mut reader = Reader { bytes, at: 0 };
    reader.version()?;
    let clock = reader.u64()?;
    let wall = reader.u64()?;
    let seed = reader.take(16)?.try_into().expect("sixteen bytes were taken");
    let count = reader.u32()?;
    let mut commands = Vec::with_capacity((count as usize).min(crate::limits::BATCH_COMMANDS_MAX));
    for _ in 0..count {
        let length = reader.u32()? as usize;
        let start = reader.at;
        reader.take(length)?;
        commands.push(bytes.slice(start..start + length));
    }
    if reader.at != bytes.len() {
        return Err(CodecError::Malformed(format!("{} bytes too many", bytes.len() - reader.at)));
    }
    Ok(Batch { clock, wall, seed, commands })
}
