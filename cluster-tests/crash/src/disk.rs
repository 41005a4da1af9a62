//! A disk in memory, by which a record is played, and what a power loss may leave of it.
//!
//! Owns the model of a file system, and nothing else: it knows no file of ours. Never touches a real disk.
//!
//! # What is assumed of the file system
//!
//! Less than ext4 gives, so what holds here holds there:
//!
//! * When `fsync` or `fdatasync` of a file returns, everything written to it, and every change of its length, before the call
//!   survives. Neither says anything of its name.
//! * When `fsync` of a directory returns, every name made, changed or removed in it before the call survives. It says nothing of
//!   what the named files hold.
//! * A rename is atomic. The changes of names in one directory survive in their order: those up to some moment and none after it.
//!   (ext4 keeps the order between directories too, and any sync makes all names durable. [`super::loss::Names::Each`] does not rely on it.)
//! * Whatever was not synced survives or not, each block of 4 KiB by itself, later ones without earlier ones. A block that was
//!   being written may be torn at a sector of 512 bytes. Where a block is missing before one that survived there are zeros.
//! * The length of a file follows the blocks that survived. A change of the length by `ftruncate` or `O_TRUNC` and what was
//!   written before it keep their order.
//! * The disk does not lie about a sync, and does not change by itself what it holds: those are other tests.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::rngs::StdRng;

use super::event::Event;
use super::loss::{Data, Loss, Names, put, scatter};
use super::mutant::Mutant;

/// What a name stands for in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A directory.
    Dir,
    /// A file and what it holds.
    File(Vec<u8>),
}

/// Everything under a directory, by path relative to it. Parents come before what is in them.
pub type Tree = BTreeMap<String, Node>;

#[derive(Debug, Default)]
struct File {
    durable: Vec<u8>,
    pending: Vec<(u64, DataChange)>,
}

#[derive(Debug, Clone)]
enum DataChange {
    Write(u64, Vec<u8>),
    Length(u64),
}

#[derive(Debug, Default)]
struct Dir {
    durable: BTreeMap<String, usize>,
    now: BTreeMap<String, usize>,
    pending: Vec<(u64, NameChange)>,
}

#[derive(Debug, Clone)]
enum NameChange {
    Set(String, usize),
    Gone(String),
    Renamed(String, String, usize),
}

#[derive(Debug)]
enum Inode {
    File(File),
    Dir(Dir),
}

/// A sync under way.
#[derive(Debug)]
struct Sync {
    inode: usize,
    /// What was given to the system before this moment is covered.
    begun: u64,
    /// Path and kind, for mutants.
    path: String,
    data_only: bool,
}

/// See the top of the file.
#[derive(Debug)]
pub struct Disk {
    inodes: Vec<Inode>,
    open: BTreeMap<i32, (usize, String)>,
    syncs: BTreeMap<u64, Sync>,
    clock: u64,
    mutant: Option<Mutant>,
    /// Whether it has left out any.
    has_left_out: bool,
}

const ROOT: usize = 0;

impl Disk {
    /// A disk that durably holds this. Syncs that the mutant leaves out do nothing.
    pub fn holding(tree: &Tree, mutant: Option<Mutant>) -> Self {
        let inodes = vec![Inode::Dir(Dir::default())];
        let mut disk =
            Self { inodes, open: BTreeMap::new(), syncs: BTreeMap::new(), clock: 0, mutant, has_left_out: false };
        for (path, node) in tree {
            let inode = disk.add(match node {
                Node::Dir => Inode::Dir(Dir::default()),
                Node::File(content) => Inode::File(File { durable: content.clone(), pending: Vec::new() }),
            });
            let (parent, name) = disk.parent_of(path);
            let dir = disk.dir(parent);
            dir.durable.insert(name.clone(), inode);
            dir.now.insert(name, inode);
        }
        disk
    }

    /// Plays one event. Panics where the record contradicts itself: then something went past the recorder.
    pub fn play(&mut self, event: &Event) {
        self.clock += 1;
        match event {
            Event::Open { fd, path, create, truncate } => self.opened(*fd, path, *create, *truncate),
            Event::Close { fd } => drop(self.open.remove(fd)),
            Event::Write { fd, offset, bytes } => self.change_data(*fd, DataChange::Write(*offset, bytes.clone())),
            Event::Truncate { fd, length } => self.change_length(*fd, *length),
            Event::SyncBegin { fd, number, data_only } => {
                let (inode, path) = self.open.get(fd).unwrap_or_else(|| panic!("a sync of descriptor {fd}")).clone();
                self.syncs.insert(*number, Sync { inode, begun: self.clock, path, data_only: *data_only });
            }
            Event::SyncEnd { number } => self.synced(*number),
            Event::Rename { from, to } => self.renamed(from, to),
            Event::Link { from, to } => {
                let inode = self.find(from).unwrap_or_else(|| panic!("a link to {from}, which is not there"));
                self.name(to, inode);
            }
            Event::Remove { path } => self.removed(path),
            Event::MakeDir { path } => {
                let inode = self.add(Inode::Dir(Dir::default()));
                self.name(path, inode);
            }
            Event::Said(_) => {}
        }
    }

    /// Whether this disk may differ from a sound one by now.
    pub fn is_suspect(&self) -> bool {
        self.mutant.is_none() || self.has_left_out
    }

    /// What a power loss right now leaves.
    pub fn after(&self, loss: Loss, dice: &mut StdRng) -> Tree {
        let mut tree = Tree::new();
        let pending = self.inodes.iter().filter_map(|inode| match inode {
            Inode::Dir(dir) => dir.pending.first().map(|(at, _)| *at),
            Inode::File(_) => None,
        });
        let oldest = pending.min().unwrap_or(self.clock);
        let cut = dice.random_range(oldest..=self.clock);
        self.leave(ROOT, "", loss, cut, &mut tree, dice);
        tree
    }

    fn leave(&self, inode: usize, path: &str, loss: Loss, cut: u64, tree: &mut Tree, dice: &mut StdRng) {
        let dir = match &self.inodes[inode] {
            Inode::Dir(dir) => dir,
            Inode::File(file) => {
                tree.insert(path.to_owned(), Node::File(file.after(loss.data, dice)));
                return;
            }
        };
        if !path.is_empty() {
            tree.insert(path.to_owned(), Node::Dir);
        }
        let upto = match loss.names {
            Names::None => 0,
            Names::All => u64::MAX,
            Names::InOrder => cut,
            Names::Each => {
                let left = dice.random_range(0..=dir.pending.len());
                left.checked_sub(1).map_or(0, |last| dir.pending[last].0)
            }
        };
        let mut names = dir.durable.clone();
        for (_, change) in dir.pending.iter().filter(|(at, _)| *at <= upto) {
            change.apply(&mut names);
        }
        for (name, inode) in names {
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            self.leave(inode, &path, loss, cut, tree, dice);
        }
    }

    fn add(&mut self, inode: Inode) -> usize {
        self.inodes.push(inode);
        self.inodes.len() - 1
    }

    fn dir(&mut self, inode: usize) -> &mut Dir {
        match &mut self.inodes[inode] {
            Inode::Dir(dir) => dir,
            Inode::File(_) => panic!("a name in a file"),
        }
    }

    fn find(&self, path: &str) -> Option<usize> {
        path.split('/').filter(|name| !name.is_empty()).try_fold(ROOT, |inode, name| match &self.inodes[inode] {
            Inode::Dir(dir) => dir.now.get(name).copied(),
            Inode::File(_) => None,
        })
    }

    /// The directory that a path's last name is in, and that name.
    fn parent_of(&self, path: &str) -> (usize, String) {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let inode = self.find(parent).unwrap_or_else(|| panic!("{path} is in no directory that is known"));
        (inode, name.to_owned())
    }

    fn change_names(&mut self, parent: usize, change: NameChange) {
        let clock = self.clock;
        let dir = self.dir(parent);
        change.apply(&mut dir.now);
        dir.pending.push((clock, change));
    }

    fn name(&mut self, path: &str, inode: usize) {
        let (parent, name) = self.parent_of(path);
        self.change_names(parent, NameChange::Set(name, inode));
    }

    fn opened(&mut self, fd: i32, path: &str, create: bool, truncate: bool) {
        let inode = match self.find(path) {
            Some(inode) => inode,
            None if create => {
                let inode = self.add(Inode::File(File::default()));
                self.name(path, inode);
                inode
            }
            None => panic!("{path} was opened, but nothing made it"),
        };
        self.open.insert(fd, (inode, path.to_owned()));
        if truncate {
            self.change_length(fd, 0);
        }
    }

    fn file(&mut self, fd: i32) -> &mut File {
        let (inode, path) = self.open.get(&fd).unwrap_or_else(|| panic!("a change by descriptor {fd}"));
        match &mut self.inodes[*inode] {
            Inode::File(file) => file,
            Inode::Dir(_) => panic!("a write to the directory {path}"),
        }
    }

    fn change_data(&mut self, fd: i32, change: DataChange) {
        let clock = self.clock;
        self.file(fd).pending.push((clock, change));
    }

    fn change_length(&mut self, fd: i32, length: u64) {
        if self.file(fd).length() != length {
            self.change_data(fd, DataChange::Length(length));
        }
    }

    fn synced(&mut self, number: u64) {
        let sync = self.syncs.remove(&number).unwrap_or_else(|| panic!("sync {number} ended before it began"));
        if self.mutant.is_some_and(|mutant| mutant.leaves_out(&sync.path, sync.data_only)) {
            self.has_left_out = true;
            return;
        }
        match &mut self.inodes[sync.inode] {
            Inode::File(file) => file.settle(sync.begun),
            Inode::Dir(dir) => dir.settle(sync.begun),
        }
    }

    fn renamed(&mut self, from: &str, to: &str) {
        let ((parent, from_name), (to_parent, to_name)) = (self.parent_of(from), self.parent_of(to));
        assert_eq!(
            parent, to_parent,
            "{from} was renamed to {to}: between directories it would not be one change here"
        );
        let inode = self.find(from).unwrap_or_else(|| panic!("{from} was renamed, but nothing made it"));
        self.change_names(parent, NameChange::Renamed(from_name, to_name, inode));
    }

    fn removed(&mut self, path: &str) {
        let (parent, name) = self.parent_of(path);
        assert!(self.find(path).is_some(), "{path} was removed, but nothing made it");
        self.change_names(parent, NameChange::Gone(name));
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            NameChange::Set(name, inode) => drop(names.insert(name.clone(), *inode)),
            NameChange::Gone(name) => drop(names.remove(name)),
            NameChange::Renamed(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }
}

impl Dir {
    fn settle(&mut self, begun: u64) {
        let rest = self.pending.partition_point(|(at, _)| *at < begun);
        for (_, change) in self.pending.drain(..rest) {
            change.apply(&mut self.durable);
        }
    }
}

impl File {
    fn length(&self) -> u64 {
        self.pending.iter().fold(self.durable.len() as u64, |length, (_, change)| match change {
            DataChange::Write(offset, bytes) => length.max(offset + bytes.len() as u64),
            DataChange::Length(length) => *length,
        })
    }

    fn settle(&mut self, begun: u64) {
        let rest = self.pending.partition_point(|(at, _)| *at < begun);
        for (_, change) in self.pending.drain(..rest) {
            change.apply(&mut self.durable);
        }
    }

    fn after(&self, data: Data, dice: &mut StdRng) -> Vec<u8> {
        let mut content = self.durable.clone();
        let half = self.pending.len() / 2;
        let share = [0.1, 0.5, 0.9][dice.random_range(0..3)];
        for (at, (_, change)) in self.pending.iter().enumerate() {
            match (data, change) {
                (Data::None, _) => break,
                (Data::Later, DataChange::Write(..)) if at < half => {}
                (Data::Some, DataChange::Length(_)) if dice.random_bool(0.5) => break,
                (Data::Some, DataChange::Write(offset, bytes)) => {
                    scatter(*offset, bytes, share, &mut content, dice);
                }
                _ => change.apply(&mut content),
            }
        }
        content
    }
}

impl DataChange {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            DataChange::Write(offset, bytes) => put(*offset, bytes, content),
            DataChange::Length(length) => content.resize(*length as usize, 0),
        }
    }
}
