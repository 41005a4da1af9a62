//! The simulated object store: what it shows, what it loses, and that an archive is whole although its pages are of several moments.
//!
//! Owns no part of the store. Its file is that of the program `simulate`, which is not built a second time for these tests.

use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt};
use quorate_archive::{Archive, BaseName, Catalogue, Form, Location, SegmentName};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::objects::Objects;

thread_local! {
    /// The time of the store that the test of this thread has, milliseconds.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// Waits for a request while time goes by for the store, too.
fn until_answered<T>(objects: &Objects, request: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without I/O can be made").block_on(async {
        let mut request = pin!(request);
        for _ in 0..60_000 {
            NOW.set(NOW.get() + 1);
            objects.advance(NOW.get());
            if let Ok(answer) = tokio::time::timeout(Duration::from_millis(1), &mut request).await {
                return answer;
            }
        }
        panic!("no answer");
    })
}

/// Objects without a fault, and their store as a host has it. From now on all time is theirs.
fn well() -> (Arc<Objects>, Arc<dyn ObjectStore>) {
    NOW.set(0);
    let objects = Arc::new(Objects::default());
    objects.heal();
    let store = objects.of(1, StdRng::seed_from_u64(7));
    (objects, store)
}

#[test]
fn what_was_put_is_listed_in_order_page_by_page_until_it_is_removed() {
    let (objects, store) = well();
    for number in [12, 3, 7, 1, 9, 5] {
        let path = Path::from(format!("all/{number:02}"));
        until_answered(&objects, store.put(&path, "bytes".into())).expect("it is well");
    }
    until_answered(&objects, store.put(&Path::from("allother"), "bytes".into())).expect("it is well");
    let names = |offset: Option<&str>| {
        let (prefix, offset) = (Path::from("all"), offset.map(Path::from));
        let listed = match &offset {
            None => store.list(Some(&prefix)),
            Some(offset) => store.list_with_offset(Some(&prefix), offset),
        };
        let listed: Vec<ObjectMeta> = until_answered(&objects, listed.try_collect()).expect("it is well");
        listed.iter().filter_map(|object| object.location.filename().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(names(None), ["01", "03", "05", "07", "09", "12"]);
    assert_eq!(names(Some("all/07")), ["09", "12"]);
    until_answered(&objects, store.delete(&Path::from("all/09"))).expect("it is well");
    assert_eq!(names(Some("all/07")), ["12"]);
    let dirs = until_answered(&objects, store.list_with_delimiter(None)).expect("it is well");
    assert_eq!((dirs.common_prefixes, dirs.objects.len()), (vec![Path::from("all")], 1));
}

fn base(index: u64) -> BaseName {
    BaseName { index, term: 1, revision: index, wall: index, node: 1 }
}

fn piece(first: u64, last: u64) -> SegmentName {
    let (wall_min, wall, checksum) = (first, last, first);
    SegmentName { first, last, revision: Some(last), wall_min, wall, checksum, form: Form::Plain }
}

/// The archive as one listing shows it, whose pages are of several moments.
async fn listed_once(store: &dyn ObjectStore) -> Catalogue {
    let all: Vec<ObjectMeta> = store.list(None).try_collect().await.expect("it is well");
    let parts = |path: &Path| path.parts().map(|part| part.as_ref().to_owned()).collect::<Vec<_>>();
    let paths: Vec<Vec<String>> = all.iter().map(|object| parts(&object.location)).collect();
    let whole = paths.iter().filter(|path| path.last().is_some_and(|last| last == "manifest.json"));
    let bases = whole.filter_map(|path| path[2].parse().ok()).collect();
    let segments = paths.iter().filter_map(|path| path[2].parse().ok()).collect();
    Catalogue { bases, segments, ..Catalogue::default() }
}

#[test]
fn an_archive_shows_no_gap_while_a_base_comes_and_all_before_it_goes() {
    let mut torn = 0;
    for seed in 0..120 {
        let (objects, fast) = well();
        let slow = |host| {
            objects.slow_down(host, 500, 100_000);
            objects.of(host, StdRng::seed_from_u64(100 * u64::from(host) + seed))
        };
        let (looks_once, lists) = (slow(2), slow(3));
        let root = Path::from(format!("quorate-{:032x}", 7));
        let manifest = |base: BaseName| root.clone().join("base").join(base.to_string()).join("manifest.json");
        let log = |piece: &SegmentName| root.clone().join("log").join(piece.to_string());
        let put = async |path: Path| drop(fast.put(&path, "".into()).await.expect("it is well"));
        let remove = async |path: Path| fast.delete(&path).await.expect("it is well");
        // A small page ends behind the bases.
        let (bases, pieces) = ([10, 15, 20].map(base), [piece(11, 30), piece(31, 40)]);
        until_answered(&objects, async {
            for piece in &pieces {
                put(log(piece)).await;
            }
            for base in bases {
                put(manifest(base)).await;
            }
        });
        let prune = async {
            tokio::time::sleep(Duration::from_millis(8 * seed)).await;
            put(manifest(base(30))).await;
            for base in bases {
                remove(manifest(base)).await;
            }
            remove(log(&pieces[0])).await;
        };
        let place = Location::given(lists, "the simulated store").open_existing().expect("a store is there");
        let archive = Archive::of(place, 7);
        let all = async { tokio::join!(listed_once(&*looks_once), archive.catalogue(), prune) };
        let (once, shown, ()) = until_answered(&objects, all);
        torn += usize::from(!once.survey().gaps().is_empty());
        let shown = shown.expect("it is well");
        assert_eq!(shown.survey().gaps(), [], "seed {seed}: {shown:?}");
        assert_eq!(shown.survey().reaches.last().map(|reach| reach.index), Some(40), "seed {seed}: {shown:?}");
    }
    assert!(torn > 0, "no listing showed several moments: that proves nothing");
}

#[test]
fn what_was_hurt_is_told_until_it_is_written_again() {
    let (objects, store) = well();
    let (path, mut dice) = (Path::from("one"), StdRng::seed_from_u64(7));
    let put = || until_answered(&objects, store.put(&path, "bytes".into())).expect("it is well");
    let read = || until_answered(&objects, async { store.get(&path).await?.bytes().await });
    put();
    assert_eq!(objects.damage(&mut dice).as_deref(), Some("one"));
    assert_ne!(read().expect("it is there"), "bytes");
    assert!(objects.hurt().damaged.contains("one"));
    put();
    assert!(objects.hurt().damaged.is_empty() && read().expect("it is there") == "bytes");
    assert_eq!(objects.lose(&mut dice).as_deref(), Some("one"));
    assert!(matches!(read(), Err(Error::NotFound { .. })) && objects.hurt().lost.contains_key("one"));
    objects.refuse(1, 1_000);
    assert!(until_answered(&objects, store.put(&path, "bytes".into())).is_err() && objects.all().is_empty());
}
