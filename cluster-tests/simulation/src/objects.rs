//! The object store of a simulation, in which nodes keep their archive.
//!
//! Owns the objects, how long a request takes, what becomes of it, and what is told of objects that were hurt. It does nothing that no store
//! does: a put is whole or not at all, and what is there once is listed at once, but page by page, so that one listing shows several moments.
//! Nobody may know what became of a put; it comes late, or twice. A node that is gone takes no request back that is under way. Never judges.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::address::HostId;
use crate::aside;

const STORE: &str = "simulated";
/// Longest way of a request or an answer while all is well, milliseconds.
const WELL: u64 = 30;
/// Of so many changes one is dropped, done without an answer, or done twice.
const FAILS_IN: u32 = 15;
/// Of so many reads one fails: a trial that read nothing else would hardly ever come to its end.
const READ_FAILS_IN: u32 = 300;
/// Names in a page of a listing.
const PAGES: [usize; 4] = [3, 10, 100, 1_000];
/// What an object with this name holds is a note about the others.
pub const NOTE: &str = "verified.json";
/// What it does to objects.
pub const DAMAGED: &str = "an object was damaged";
pub const LOST: &str = "an object was lost";

/// The objects.
#[derive(Debug, Default)]
pub struct Objects {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Milliseconds of virtual time.
    now: u64,
    objects: BTreeMap<String, Bytes>,
    /// What comes about when.
    under_way: BTreeMap<(u64, u64), Deed>,
    number: u64,
    /// Whose requests are refused until when, and whose take up to how long until when.
    out: BTreeMap<HostId, u64>,
    slow: BTreeMap<HostId, (u64, u64)>,
    /// Nothing goes wrong by chance any more.
    is_well: bool,
    hurt: Hurt,
    /// Names of all that was ever there.
    ever: BTreeSet<String>,
    met: BTreeMap<&'static str, u64>,
}

/// Objects that are not as they were written, as an operator would be told.
#[derive(Debug, Clone, Default)]
pub struct Hurt {
    /// Bytes of them are others.
    pub damaged: BTreeSet<String>,
    /// They are gone, with what was in them.
    pub lost: BTreeMap<String, Bytes>,
}

#[derive(Debug)]
struct Deed {
    path: String,
    what: What,
    /// Whether it was done; false where an object was in its way.
    done: Arc<OnceLock<bool>>,
}

#[derive(Debug, Clone)]
enum What {
    Put { bytes: Bytes, is_only_new: bool },
    Remove,
}

impl Inner {
    fn begin(&mut self, at: u64, path: &str, what: What, done: &Arc<OnceLock<bool>>) {
        self.number += 1;
        let deed = Deed { path: path.to_owned(), what, done: Arc::clone(done) };
        self.under_way.insert((self.now + at, self.number), deed);
    }

    fn carry_out(&mut self, Deed { path, what, done }: Deed) {
        let is_done = match what {
            What::Put { is_only_new: true, .. } if self.objects.contains_key(&path) => false,
            What::Put { bytes, .. } => {
                self.mend(&path);
                self.ever.insert(path.clone());
                self.objects.insert(path, bytes);
                true
            }
            What::Remove => {
                self.mend(&path);
                self.objects.remove(&path);
                true
            }
        };
        // What comes a second time was answered already.
        let _answered = done.set(is_done);
    }

    fn mend(&mut self, path: &str) {
        self.hurt.damaged.remove(path);
        self.hurt.lost.remove(path);
    }

    fn meet(&mut self, what: &'static str) {
        *self.met.entry(what).or_default() += 1;
    }
}

impl Objects {
    /// Time goes on until then: what is due by it comes about.
    pub fn advance(&self, now: u64) {
        let mut inner = self.inner.lock();
        inner.now = now;
        while let Some(first) = inner.under_way.first_entry().filter(|first| first.key().0 <= now) {
            let deed = first.remove();
            inner.carry_out(deed);
        }
    }

    /// The store as one host has it.
    pub fn of(self: &Arc<Self>, host: HostId, dice: StdRng) -> Arc<dyn ObjectStore> {
        Arc::new(View { objects: Arc::clone(self), host, dice: Arc::new(Mutex::new(dice)) })
    }

    /// It refuses whatever a host asks, for so many milliseconds.
    pub fn refuse(&self, host: HostId, millis: u64) {
        let mut inner = self.inner.lock();
        let until = inner.now + millis;
        inner.out.insert(host, until);
    }

    /// Each way of a host's requests takes up to so many milliseconds, for so many milliseconds.
    pub fn slow_down(&self, host: HostId, slowest: u64, millis: u64) {
        let mut inner = self.inner.lock();
        let until = inner.now + millis;
        inner.slow.insert(host, (until, slowest));
    }

    /// It does from now on what it is asked.
    pub fn heal(&self) {
        let mut inner = self.inner.lock();
        inner.is_well = true;
        inner.out.clear();
        inner.slow.clear();
    }

    /// Damages a byte of an object, and says of which.
    pub fn damage(&self, dice: &mut StdRng) -> Option<String> {
        let mut inner = self.inner.lock();
        let path = inner.any(dice)?;
        let mut bytes = inner.objects.get(&path).filter(|bytes| !bytes.is_empty())?.to_vec();
        let at = dice.random_range(0..bytes.len());
        bytes[at] ^= 1_u8 << dice.random_range(0..8_u32);
        inner.objects.insert(path.clone(), bytes.into());
        inner.hurt.damaged.insert(path.clone());
        inner.meet(DAMAGED);
        Some(path)
    }

    /// Loses an object, and says which.
    pub fn lose(&self, dice: &mut StdRng) -> Option<String> {
        let mut inner = self.inner.lock();
        let path = inner.any(dice)?;
        let bytes = inner.objects.remove(&path)?;
        inner.hurt.damaged.remove(&path);
        inner.hurt.lost.insert(path.clone(), bytes);
        inner.meet(LOST);
        Some(path)
    }

    /// What was damaged or lost, and neither written again nor removed since.
    pub fn hurt(&self) -> Hurt {
        self.inner.lock().hurt.clone()
    }

    /// All that is there.
    pub fn all(&self) -> BTreeMap<String, Bytes> {
        self.inner.lock().objects.clone()
    }

    /// Names of all that was ever there.
    pub fn ever(&self) -> BTreeSet<String> {
        self.inner.lock().ever.clone()
    }

    /// How often it did what.
    pub fn met(&self) -> BTreeMap<&'static str, u64> {
        self.inner.lock().met.clone()
    }
}

impl Inner {
    fn any(&self, dice: &mut StdRng) -> Option<String> {
        let names: Vec<&String> = self.objects.keys().collect();
        names.choose(dice).map(|name| (*name).clone())
    }
}

/// A store that holds these objects and does as it is asked, for who judges.
pub fn memory(objects: &BTreeMap<String, Bytes>) -> Arc<dyn ObjectStore> {
    let memory = InMemory::new();
    for (path, bytes) in objects {
        let put = memory.put(&Path::from(path.as_str()), bytes.clone().into()).now_or_never();
        put.expect("memory keeps nobody waiting").expect("memory takes everything");
    }
    Arc::new(memory)
}

/// What becomes of a request that changes something.
#[derive(Clone, Copy)]
enum Fate {
    Well,
    /// It is not done, and nobody says so.
    Dropped,
    /// It is done, and called failed.
    Unheard,
    /// It is done twice until it is answered, as where it was sent again.
    Repeated,
}

/// See [`Objects::of`].
#[derive(Debug, Clone)]
struct View {
    objects: Arc<Objects>,
    host: HostId,
    dice: Arc<Mutex<StdRng>>,
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{STORE} for node {}", self.host)
    }
}

fn failed(why: &str) -> Error {
    Error::Generic { store: STORE, source: why.into() }
}

fn not_found(path: &str) -> Error {
    Error::NotFound { path: path.to_owned(), source: "it is not there".into() }
}

fn meta(path: &str, size: usize) -> ObjectMeta {
    let (last_modified, e_tag, version) = Default::default();
    ObjectMeta { location: Path::from(path), last_modified, size: size as u64, e_tag, version }
}

fn put_result() -> PutResult {
    PutResult { e_tag: None, version: None, extensions: Default::default() }
}

impl View {
    /// Lets time go by, by the clock of the host.
    async fn wait(&self, millis: u64) -> Result<()> {
        let time = Duration::from_millis(millis);
        if aside::is_here() {
            return if aside::wait(time) { Ok(()) } else { Err(failed("the machine is gone")) };
        }
        tokio::time::sleep(time).await;
        Ok(())
    }

    /// How long a request or an answer is on its way.
    fn way(&self) -> u64 {
        let slowest = {
            let inner = self.objects.inner.lock();
            inner.slow.get(&self.host).filter(|(until, _)| inner.now < *until).map_or(WELL, |(_, slowest)| *slowest)
        };
        self.dice.lock().random_range(1..=slowest)
    }

    fn is_refused(&self) -> bool {
        let mut inner = self.objects.inner.lock();
        let is_refused = inner.out.get(&self.host).is_some_and(|until| inner.now < *until);
        if is_refused {
            inner.meet("a request met an outage");
        }
        is_refused
    }

    /// Whether something happens that does so once in so many times.
    fn happens(&self, once_in: u32) -> bool {
        let is_well = self.objects.inner.lock().is_well;
        !is_well && self.dice.lock().random_ratio(1, once_in)
    }

    fn fate(&self) -> Fate {
        if !self.happens(FAILS_IN) {
            return Fate::Well;
        }
        let (fate, met) = match self.dice.lock().random_range(0..3) {
            0 => (Fate::Dropped, "a change was dropped"),
            1 => (Fate::Unheard, "a change was done and called failed"),
            _ => (Fate::Repeated, "a change came twice"),
        };
        self.objects.inner.lock().meet(met);
        fate
    }

    /// The way of a request that changes nothing, there and back.
    async fn pass(&self) -> Result<()> {
        self.wait(self.way() + self.way()).await?;
        if self.is_refused() {
            return Err(failed("it cannot be reached"));
        }
        if self.happens(READ_FAILS_IN) { Err(failed("it is busy")) } else { Ok(()) }
    }

    /// Changes something. An error says nothing of whether it was done.
    async fn carry_out(&self, path: &str, what: What) -> Result<()> {
        let (there, back) = (self.way(), self.way());
        if self.is_refused() {
            self.wait(back).await?;
            return Err(failed("it cannot be reached"));
        }
        let (fate, done) = (self.fate(), Arc::default());
        if !matches!(fate, Fate::Dropped) {
            self.objects.inner.lock().begin(there, path, what.clone(), &done);
        }
        if matches!(fate, Fate::Repeated) {
            let later = there + self.dice.lock().random_range(1..=back);
            self.objects.inner.lock().begin(later, path, what, &done);
        }
        self.wait(there + back).await?;
        if matches!(fate, Fate::Dropped | Fate::Unheard) {
            return Err(failed("there was no answer"));
        }
        // The clock of the host may be ahead.
        while done.get().is_none() {
            self.wait(1).await?;
        }
        match done.get() {
            Some(false) => Err(Error::AlreadyExists { path: path.to_owned(), source: "it is there".into() }),
            _ => Ok(()),
        }
    }

    /// Pages of names, each as of when it is given.
    fn pages(&self, prefix: Option<&Path>, after: Option<String>) -> BoxStream<'static, Result<ObjectMeta>> {
        let prefix = prefix.map_or(String::new(), |prefix| format!("{prefix}/"));
        let view = self.clone();
        let pages = stream::try_unfold(Some(after), move |place| {
            let (view, prefix) = (view.clone(), prefix.clone());
            async move {
                let Some(after) = place else { return Ok::<_, Error>(None) };
                view.pass().await?;
                let count = *PAGES.choose(&mut *view.dice.lock()).expect("not empty");
                let page = view.objects.page(&prefix, after, count);
                let next = page.last().filter(|_| page.len() == count).map(|last| Some(last.location.to_string()));
                Ok(Some((stream::iter(page.into_iter().map(Ok::<_, Error>)), next)))
            }
        });
        pages.try_flatten().boxed()
    }
}

impl Objects {
    fn page(&self, prefix: &str, after: Option<String>, count: usize) -> Vec<ObjectMeta> {
        let inner = self.inner.lock();
        let begin = after.map_or(Bound::Included(prefix.to_owned()), Bound::Excluded);
        let names = inner.objects.range((begin, Bound::Unbounded)).skip_while(|(name, _)| name.as_str() < prefix);
        let within = names.take_while(|(name, _)| name.starts_with(prefix));
        within.take(count).map(|(name, bytes)| meta(name, bytes.len())).collect()
    }
}

#[async_trait]
impl ObjectStore for View {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let is_only_new = match opts.mode {
            PutMode::Overwrite => false,
            PutMode::Create => true,
            PutMode::Update(_) => return Err(Error::NotSupported { source: "no object has a version here".into() }),
        };
        self.carry_out(location.as_ref(), What::Put { bytes: payload.into(), is_only_new }).await?;
        Ok(put_result())
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.pass().await?;
        Ok(Box::new(Upload { view: self.clone(), path: location.to_string(), parts: Arc::default(), count: 0 }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.pass().await?;
        let bytes = self.objects.inner.lock().objects.get(location.as_ref()).cloned();
        let bytes = bytes.ok_or_else(|| not_found(location.as_ref()))?;
        let meta = meta(location.as_ref(), bytes.len());
        options.check_preconditions(&meta)?;
        let range = match &options.range {
            Some(range) => {
                range.as_range(meta.size).map_err(|error| Error::Generic { store: STORE, source: Box::new(error) })?
            }
            None => 0..meta.size,
        };
        let bytes = if options.head { Bytes::new() } else { bytes.slice(range.start as usize..range.end as usize) };
        let chunks = if self.happens(READ_FAILS_IN) {
            self.objects.inner.lock().meet("a download broke off");
            vec![Ok(bytes.slice(..bytes.len() / 2)), Err(failed("the line is dead"))]
        } else {
            vec![Ok(bytes)]
        };
        let payload = GetResultPayload::Stream(stream::iter(chunks).boxed());
        let (attributes, extensions) = Default::default();
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let view = self.clone();
        let remove = move |path: Path| {
            let view = view.clone();
            async move {
                view.carry_out(path.as_ref(), What::Remove).await?;
                Ok(path)
            }
        };
        locations.and_then(remove).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.pages(prefix, None)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.pages(prefix, Some(offset.to_string()))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let all: Vec<ObjectMeta> = self.pages(prefix, None).try_collect().await?;
        let prefix = prefix.cloned().unwrap_or_default();
        let (mut dirs, mut objects) = (BTreeSet::new(), Vec::new());
        for object in all {
            let dir = {
                let mut parts = object.location.prefix_match(&prefix).into_iter().flatten();
                let first = parts.next();
                first.filter(|_| parts.next().is_some()).map(|dir| prefix.clone().join(dir))
            };
            match dir {
                Some(dir) => drop(dirs.insert(dir)),
                None => objects.push(object),
            }
        }
        Ok(ListResult { common_prefixes: dirs.into_iter().collect(), objects, extensions: Default::default() })
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let bytes = self.objects.inner.lock().objects.get(from.as_ref()).cloned();
        let bytes = bytes.ok_or_else(|| not_found(from.as_ref()))?;
        let is_only_new = matches!(options.mode, CopyMode::Create);
        self.carry_out(to.as_ref(), What::Put { bytes, is_only_new }).await
    }
}

/// An object that comes in parts. It is there once all of them are, at once.
#[derive(Debug)]
struct Upload {
    view: View,
    path: String,
    parts: Arc<Mutex<BTreeMap<usize, Bytes>>>,
    count: usize,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (view, parts, number) = (self.view.clone(), Arc::clone(&self.parts), self.count);
        self.count += 1;
        async move {
            view.pass().await?;
            parts.lock().insert(number, data.into());
            Ok(())
        }
        .boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let bytes: Vec<u8> = self.parts.lock().values().flatten().copied().collect();
        self.view.carry_out(&self.path, What::Put { bytes: bytes.into(), is_only_new: false }).await?;
        Ok(put_result())
    }

    async fn abort(&mut self) -> Result<()> {
        self.view.pass().await
    }
}

/// The dice of each host's requests.
pub fn dice(dice: &mut StdRng) -> StdRng {
    StdRng::seed_from_u64(dice.random())
}
