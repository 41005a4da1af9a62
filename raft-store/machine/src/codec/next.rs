//! A version of records after the one that is written, which only this test knows: what its layout changed is read as it was before.

mod v1;

use bincode::de::Decoder;
use bincode::error::DecodeError;
use bincode::{Decode, Encode};

use super::*;

/// What a build reads that comes after this one.
const NEXT: Versions = Versions::new(1, 2, 2);

/// Says since version 2 in which zone it is, and has its number last.
#[derive(Debug, Clone, PartialEq, Eq, Encode)]
struct Place {
    address: String,
    zone: Option<String>,
    number: u64,
}

impl Decode<Written> for Place {
    fn decode<D: Decoder<Context = Written>>(decoder: &mut D) -> Result<Self, DecodeError> {
        match *decoder.context() {
            Written(1) => v1::Place::decode(decoder).map(Self::from),
            Written(_) => {
                let (address, zone, number) = Decode::decode(decoder)?;
                Ok(Self { address, zone, number })
            }
        }
    }
}

bincode::impl_borrow_decode_with_context!(Place, Written);

/// Whatever holds one is read as before.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[bincode(decode_context = "Written")]
struct Map {
    name: String,
    places: Vec<Place>,
    home: Option<Place>,
}

fn encode_as(version: u8, record: &impl Encode) -> Vec<u8> {
    let mut bytes = encode(record);
    bytes[0] = version;
    bytes
}

#[test]
fn a_layout_that_changed_is_read_as_it_was_written() {
    let before = v1::Map {
        name: "m".into(),
        places: vec![v1::Place { number: 7, address: "a:1".into() }],
        home: Some(v1::Place { number: 1 << 40, address: "b:2".into() }),
    };
    let place = |number, address: &str| Place { address: address.into(), zone: None, number };
    let expected = Map { name: "m".into(), places: vec![place(7, "a:1")], home: Some(place(1 << 40, "b:2")) };
    assert_eq!(decode_of::<Map>(NEXT, &encode_as(1, &before)), Ok(expected.clone()));
    let now = Map { home: Some(Place { zone: Some("z".into()), ..place(9, "c:3") }), ..expected };
    assert_eq!(decode_of::<Map>(NEXT, &encode_as(2, &now)), Ok(now.clone()));
    // This build says which one it cannot read, and does not guess.
    let refused = decode_of::<Map>(RECORDS, &encode_as(2, &now)).expect_err("it knows no version 2");
    assert_eq!(refused, CodecError::UnknownVersion { found: 2 });
    assert!(refused.to_string().contains("this build reads version 1"), "{refused}");
    assert!(decode_of::<Map>(NEXT, &encode_as(2, &before)).is_err(), "the layouts do differ");
}
