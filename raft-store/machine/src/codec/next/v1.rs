//! The layout of version 1.

use bincode::{Decode, Encode};

#[derive(Debug, Encode, Decode)]
pub struct Place {
    pub number: u64,
    pub address: String,
}

#[derive(Debug, Encode, Decode)]
pub struct Map {
    pub name: String,
    pub places: Vec<Place>,
    pub home: Option<Place>,
}

impl From<Place> for super::Place {
    fn from(Place { number, address }: Place) -> Self {
        Self { address, zone: None, number }
    }
}
