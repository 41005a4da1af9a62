//! One direction of a connection of a simulation.
//!
//! Owns what was sent, what arrived, and what either end has heard of the other. Never decides when anything arrives.

use std::collections::VecDeque;
use std::io;
use std::task::{Context, Poll, Waker};

use crate::address::HostId;

/// One direction of a connection.
pub struct Pipe {
    pub from: HostId,
    pub to: HostId,
    /// What was sent, with when it arrives; an empty one is the end.
    pub sent: VecDeque<(u64, Vec<u8>)>,
    pub on_its_way: usize,
    pub arrived: VecDeque<u8>,
    /// The end arrived.
    pub ended: bool,
    /// Both ends hear of a reset, each when it gets there.
    pub reset_for_reader: bool,
    pub reset_for_writer: bool,
    pub reader_gone: bool,
    pub writer_gone: bool,
    pub last_arrival: u64,
    pub reader: Option<Waker>,
    pub writer: Option<Waker>,
}

impl Pipe {
    /// Nothing was sent yet.
    pub fn new(from: HostId, to: HostId) -> Self {
        Self {
            from,
            to,
            sent: VecDeque::new(),
            on_its_way: 0,
            arrived: VecDeque::new(),
            ended: false,
            reset_for_reader: false,
            reset_for_writer: false,
            reader_gone: false,
            writer_gone: false,
            last_arrival: 0,
            reader: None,
            writer: None,
        }
    }

    /// What a reader hears where there is nothing for it.
    pub fn nothing_to_read(&mut self, cx: &Context<'_>) -> Option<Poll<io::Result<()>>> {
        if !self.arrived.is_empty() {
            None
        } else if self.reset_for_reader {
            Some(Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())))
        } else if self.ended {
            Some(Poll::Ready(Ok(())))
        } else {
            self.reader = Some(cx.waker().clone());
            Some(Poll::Pending)
        }
    }
}
