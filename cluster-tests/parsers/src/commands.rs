//! Target `commands`: records of the log and of the state as bincode.
//!
//! The first byte says what the rest is read as. What can be read means the same after it was written again; what cannot be read says
//! why; and no length in a short record makes the reader ask for much memory.

use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use quorate_machine::codec::{self, CodecError};
use quorate_machine::command_codec;
use quorate_machine::keyspace::audit;
use quorate_machine::keyspace::request::KeptReply;
use quorate_machine::machine::Vars;
use quorate_machine::types::{Batch, Reply};
use quorate_store::raft::wire::{self, SnapshotMetaRecord};

use super::{assert_explained, memory, samples};

/// Memory that reading a record of so many bytes may take: little where it is short, whatever lengths stand in it.
pub fn room(bytes: usize) -> usize {
    const MIB: usize = 1024 * 1024;
    if bytes <= 1024 { 2 * MIB } else { 20 * MIB + 1024 * bytes }
}

/// See the head of this file.
pub fn check(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    memory::within(room(bytes.len()), "a record", || match kind % 7 {
        0 => again(bytes, command_codec::decode_command, |command| command_codec::encode_command(command).to_vec()),
        1 => again(bytes, decode_batch, |batch| command_codec::encode_batch(batch).to_vec()),
        2 => again(
            bytes,
            |bytes| wire::decode_entry(&Bytes::copy_from_slice(bytes)),
            |entry| {
                let mut written = BytesMut::new();
                wire::encode_entry(entry, &mut written);
                written.to_vec()
            },
        ),
        3 => record::<Reply>(bytes),
        4 => again(bytes, audit::decode, audit::encode),
        5 => record::<KeptReply>(bytes),
        _ => {
            record::<Vars>(bytes);
            record::<SnapshotMetaRecord>(bytes);
        }
    });
}

/// A batch is read exactly: the same bytes come back.
fn decode_batch(bytes: &[u8]) -> Result<Batch, CodecError> {
    let batch = command_codec::decode_batch(&Bytes::copy_from_slice(bytes))?;
    assert_eq!(command_codec::encode_batch(&batch), bytes, "a batch that is written differently");
    Ok(batch)
}

/// A record of this type.
pub fn record<T: bincode::Decode<quorate_machine::codec::Written> + bincode::Encode + PartialEq + Debug>(bytes: &[u8]) {
    again(bytes, codec::decode::<T>, codec::encode);
}

/// What is read is written as something that reads as the same.
pub fn again<T: PartialEq + Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, CodecError>,
    encode: impl Fn(&T) -> Vec<u8>,
) {
    match decode(bytes) {
        Err(error) => assert_explained(&error),
        Ok(value) => {
            let written = encode(&value);
            assert_eq!(decode(&written).as_ref(), Ok(&value), "after it was written again");
        }
    }
}

/// One of each kind.
pub fn samples() -> Vec<Vec<u8>> {
    let life = samples::life();
    let of_kind = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    let mut all: Vec<_> =
        life.commands.iter().map(|command| of_kind(0, &command_codec::encode_command(command))).collect();
    all.truncate(20);
    all.push(of_kind(1, &command_codec::encode_batch(&samples::batch(&life.commands[..3]))));
    all.push(of_kind(2, &samples::entry_bytes(&life.commands[..2])));
    let replies: Vec<_> = life.replies.iter().map(codec::encode).collect();
    all.extend(samples::spread(&replies, 4).map(|reply| of_kind(3, reply)));
    all.push(of_kind(6, &codec::encode(&life.vars)));
    all.retain(|sample| sample.len() <= super::replay::FILE_BYTES_MAX);
    all
}
