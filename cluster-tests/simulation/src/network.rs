//! The network of a simulation: streams of bytes between hosts, as TCP would carry them.
//!
//! Owns when bytes arrive and whether, in the order in which they were sent: each direction of each pair of hosts has a delay, may lose packets
//! (which then come late, as nothing is lost for good while a connection stands), and may be cut. Never looks into what is sent.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use quorate_node_core::net::Stream;
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::sync::{mpsc, oneshot};

use crate::address::{HostId, PipeId, address, host_of};
use crate::pipe::Pipe;

/// Bytes that are on their way or unread before a writer has to wait.
pub const WINDOW_BYTES: usize = 256 * 1024;
/// After so long what was lost is sent again, in microseconds.
const RESEND: u64 = 200_000;

/// What one direction between two hosts is like.
#[derive(Debug, Clone)]
pub struct Link {
    /// How long bytes travel, in microseconds.
    pub delay: Range<u64>,
    /// How many of a thousand packets are lost.
    pub loss: u32,
    /// Nothing passes.
    pub is_cut: bool,
}

impl Default for Link {
    fn default() -> Self {
        Self { delay: 100..1_500, loss: 0, is_cut: false }
    }
}

/// Makes an end of a connection of the pipe that it reads and the one that it writes. Sockets use the network, not the other way round.
pub type MakeEnd = fn(Net, PipeId, PipeId) -> Stream;

type Connected = oneshot::Sender<io::Result<Stream>>;

/// What will happen.
pub enum Event {
    /// The first packets of a pipe arrive, if the link lets them.
    Arrive(PipeId),
    /// A connection is asked for.
    Ask { from: HostId, to: SocketAddr, connected: Connected },
    /// The answer to that gets back.
    Answer { stream: io::Result<Stream>, connected: Connected },
    /// Whoever writes to this pipe learns that nobody reads it.
    ResetWriter(PipeId),
    /// Whoever reads from it learns that the other side is gone.
    ResetReader(PipeId),
}

/// What all handles share.
pub struct Inner {
    now: u64,
    dice: StdRng,
    make_end: MakeEnd,
    links: BTreeMap<(HostId, HostId), Link>,
    pub listeners: BTreeMap<SocketAddr, mpsc::UnboundedSender<(Stream, SocketAddr)>>,
    pub pipes: BTreeMap<PipeId, Pipe>,
    next: u64,
    events: BTreeMap<(u64, u64), Event>,
    /// Asked where nobody answers: whoever asked waits until it gives up.
    unanswered: Vec<Connected>,
    /// Connections that nobody wants, to be dropped where they may take the network in hand.
    rubbish: Vec<Stream>,
    /// What passed, as a number that differs where anything differs.
    trace: u64,
    bytes: u64,
}

/// The network. Cheap to clone.
#[derive(Clone)]
pub struct Net {
    inner: Arc<Mutex<Inner>>,
}

impl Net {
    /// Of hosts whose links are fine.
    pub fn new(dice: StdRng, make_end: MakeEnd) -> Self {
        let (links, listeners, pipes, events) = Default::default();
        let inner = Inner {
            now: 0,
            dice,
            make_end,
            links,
            listeners,
            pipes,
            next: 0,
            events,
            unanswered: Vec::new(),
            rubbish: Vec::new(),
            trace: 0,
            bytes: 0,
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Takes it in hand.
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics with the network in hand")
    }

    /// Changes what one direction is like.
    pub fn change(&self, from: HostId, to: HostId, change: impl FnOnce(&mut Link)) {
        change(self.lock().links.entry((from, to)).or_default());
    }

    /// All links are fine again.
    pub fn heal(&self) {
        self.lock().links.clear();
    }

    /// Everything that arrives up to this time, in microseconds, arrives.
    pub fn advance(&self, until: u64) {
        loop {
            let mut inner = self.lock();
            let Some((&(at, number), _)) = inner.events.first_key_value().filter(|((at, _), _)| *at <= until) else {
                inner.now = until;
                return;
            };
            let event = inner.events.remove(&(at, number)).expect("it was the first");
            inner.now = inner.now.max(at);
            let wakers = inner.happen(self, event);
            let rubbish = std::mem::take(&mut inner.rubbish);
            drop(inner);
            drop(rubbish);
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// A host is gone, all its connections with it. Unless it was `silent`, its peers hear of it.
    pub fn crash(&self, host: HostId, silent: bool) {
        let mut inner = self.lock();
        inner.listeners.retain(|address, _| host_of(*address) != Some(host));
        let touched: Vec<PipeId> =
            inner.pipes.iter().filter(|(_, pipe)| pipe.from == host || pipe.to == host).map(|(id, _)| *id).collect();
        for id in touched {
            let pipe = inner.pipes.get_mut(&id).expect("just found");
            if pipe.to == host {
                pipe.reader_gone = true;
                (pipe.arrived, pipe.reader) = Default::default();
            } else {
                // What the host had not sent yet is gone.
                pipe.writer_gone = true;
                pipe.writer = None;
                pipe.sent.clear();
                pipe.on_its_way = 0;
            }
            if !silent {
                let (peer, event) = if pipe.to == host {
                    (pipe.from, Event::ResetWriter(id))
                } else {
                    (pipe.to, Event::ResetReader(id))
                };
                inner.schedule_over(host, peer, event);
            }
        }
    }

    /// A number of everything that passed.
    pub fn trace(&self) -> u64 {
        self.lock().trace
    }

    /// Bytes that arrived.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }
}

impl Inner {
    fn link(&self, from: HostId, to: HostId) -> Link {
        self.links.get(&(from, to)).cloned().unwrap_or_default()
    }

    fn note(&mut self, what: u64) {
        self.trace = (self.trace ^ what ^ self.now.rotate_left(20)).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(23);
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.next += 1;
        self.events.insert((at, self.next), event);
    }

    /// How long a packet takes from here to there.
    fn travel(&mut self, from: HostId, to: HostId) -> u64 {
        let link = self.link(from, to);
        let mut takes = self.dice.random_range(link.delay);
        while link.loss > 0 && self.dice.random_range(0..1_000) < link.loss {
            takes += RESEND;
        }
        takes
    }

    /// Something that gets from one host to another.
    pub fn schedule_over(&mut self, from: HostId, to: HostId, event: Event) {
        let at = self.now + self.travel(from, to);
        self.schedule(at, event);
    }

    /// Sends bytes along a pipe; none are its end.
    pub fn send(&mut self, id: PipeId, bytes: Vec<u8>) {
        let (from, to) = match self.pipes.get(&id) {
            Some(pipe) => (pipe.from, pipe.to),
            None => return,
        };
        let at = self.now + self.travel(from, to);
        let pipe = self.pipes.get_mut(&id).expect("just found");
        let at = at.max(pipe.last_arrival);
        pipe.last_arrival = at;
        pipe.on_its_way += bytes.len();
        pipe.sent.push_back((at, bytes));
        self.schedule(at, Event::Arrive(id));
    }

    /// Gives who is to be woken.
    fn happen(&mut self, net: &Net, event: Event) -> Vec<Waker> {
        match event {
            Event::Arrive(id) => self.arrive(id),
            Event::Ask { from, to, connected } => {
                self.ask(net, from, to, connected);
                Vec::new()
            }
            Event::Answer { stream, connected } => {
                // Whoever asked may have given up: then the connection ends.
                self.rubbish.extend(connected.send(stream).err().and_then(Result::ok));
                Vec::new()
            }
            Event::ResetWriter(id) => self.reset(id, |pipe| {
                pipe.reset_for_writer = true;
                pipe.sent.clear();
                pipe.on_its_way = 0;
                pipe.writer.take()
            }),
            Event::ResetReader(id) => self.reset(id, |pipe| {
                pipe.reset_for_reader = true;
                pipe.reader.take()
            }),
        }
    }

    fn reset(&mut self, id: PipeId, reset: impl FnOnce(&mut Pipe) -> Option<Waker>) -> Vec<Waker> {
        self.pipes.get_mut(&id).and_then(reset).into_iter().collect()
    }

    fn arrive(&mut self, id: PipeId) -> Vec<Waker> {
        let Some(pipe) = self.pipes.get(&id) else { return Vec::new() };
        if pipe.sent.is_empty() {
            return Vec::new();
        }
        let (from, to, reader_gone) = (pipe.from, pipe.to, pipe.reader_gone);
        if self.link(from, to).is_cut {
            let again = self.now + RESEND;
            self.schedule(again, Event::Arrive(id));
            return Vec::new();
        }
        if reader_gone {
            // Nobody there, or somebody else by now: the answer is a reset.
            self.schedule_over(to, from, Event::ResetWriter(id));
            return Vec::new();
        }
        let now = self.now;
        let pipe = self.pipes.get_mut(&id).expect("just found");
        let (mut count, mut ended) = (0, false);
        while pipe.sent.front().is_some_and(|(at, _)| *at <= now) {
            let (_, bytes) = pipe.sent.pop_front().expect("there is one");
            pipe.on_its_way -= bytes.len();
            count += bytes.len();
            ended |= bytes.is_empty();
            pipe.arrived.extend(bytes);
        }
        pipe.ended |= ended;
        let wakers = pipe.reader.take().into_iter().collect();
        self.bytes += count as u64;
        self.note(id << 32 | count as u64);
        wakers
    }

    fn ask(&mut self, net: &Net, from: HostId, to: SocketAddr, connected: Connected) {
        let Some(host) = host_of(to).filter(|host| !self.link(from, *host).is_cut) else {
            return self.unanswered.push(connected);
        };
        let stream = match self.listeners.get(&to).cloned() {
            None => Err(io::ErrorKind::ConnectionRefused.into()),
            Some(listener) => {
                let (there, back) = (self.pipe(from, host), self.pipe(host, from));
                let accepted = (self.make_end)(net.clone(), there, back);
                let opened = (self.make_end)(net.clone(), back, there);
                let port = 30_000 + (there % 20_000) as u16;
                match listener.send((accepted, address(from, port))) {
                    Ok(()) => Ok(opened),
                    Err(refused) => {
                        self.rubbish.extend([refused.0.0, opened]);
                        Err(io::ErrorKind::ConnectionRefused.into())
                    }
                }
            }
        };
        self.note(u64::from(from) << 48 | u64::from(stream.is_ok()));
        if self.link(host, from).is_cut {
            self.rubbish.extend(stream.ok());
            return self.unanswered.push(connected);
        }
        self.schedule_over(host, from, Event::Answer { stream, connected });
    }

    fn pipe(&mut self, from: HostId, to: HostId) -> PipeId {
        self.next += 1;
        self.pipes.insert(self.next, Pipe::new(from, to));
        self.next
    }
}
