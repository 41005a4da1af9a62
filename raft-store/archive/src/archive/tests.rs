//! What an archive gives back, in memory and in a directory, and what it refuses.

use std::io::Write;

use super::*;
use crate::segment::After;
use crate::{Form, Listed, Location, Position, Target};

const CLUSTER: u128 = 0xabc;

fn position(index: u64) -> Position {
    Position { term: 1, node: 2, index }
}

fn head(first: u64, last: u64) -> SegmentHead {
    SegmentHead {
        cluster: String::new(),
        before: first.checked_sub(1).map(position),
        first,
        last: position(last),
        wall_min: 1_000 * first,
        wall: 1_000 * last,
        entry_format: 1,
        node: 2,
        after: Some(After { revision: 10 * last, digest: "d".into() }),
        bytes: 0,
    }
}

fn manifest(index: u64) -> BaseManifest {
    BaseManifest {
        format: 0,
        cluster: String::new(),
        position: position(index),
        revision: 10 * index,
        wall: 1_000 * index,
        digest: "d".into(),
        node: 2,
        node_version: "0".into(),
        entry_format: 1,
        written_at: 7,
        bytes: 0,
        sha256: String::new(),
        recipients: Vec::new(),
        mac: None,
    }
}

/// Writes a base in its two steps.
fn put_base(
    archive: &Archive,
    handle: &Handle,
    unfinished: &BaseManifest,
    recipients: &Recipients,
    write: impl FnOnce(&mut BaseUpload) -> io::Result<()>,
) -> Result<BaseManifest, ArchiveError> {
    let manifest = archive.upload_base(handle, unfinished, recipients, write)?;
    handle.block_on(archive.finish_base(&manifest))?;
    Ok(manifest)
}

fn entries(first: u64, last: u64) -> Vec<Bytes> {
    (first..=last).map(|index| Bytes::from(index.to_string())).collect()
}

/// Writes a piece of these entries; its name, with its bytes.
fn put_piece(handle: &Handle, archive: &Archive, (first, last): (u64, u64), recipients: &Recipients) -> Listed {
    handle.block_on(archive.put_segment(head(first, last), entries(first, last), recipients)).unwrap()
}

/// A state of this many bytes, which packs badly.
fn state(bytes: usize) -> Vec<u8> {
    let mut state = vec![0u8; bytes];
    let mut x = 7u64;
    for byte in &mut state {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (x >> 56) as u8;
    }
    state
}

fn macs(secret: &str) -> MacKeys {
    MacKeys::parse(&secret.repeat(32)).unwrap()
}

fn keys() -> Keys {
    use age::secrecy::ExposeSecret;
    Keys::parse(age::x25519::Identity::generate().to_string().expose_secret()).unwrap()
}

/// Runs on a thread that may block, as a node does it.
fn blocking(test: impl FnOnce(&Handle)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    test(runtime.handle());
}

fn read_all(archive: &Archive, handle: &Handle, manifest: &BaseManifest, keys: &Keys) -> Result<Vec<u8>, ArchiveError> {
    archive.base(handle, manifest, keys, |source| {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).map_err(|error| of_io("state", &error)).map(|_| bytes)
    })
}

fn segment_of(archive: &Archive, handle: &Handle, name: &SegmentName, keys: &Keys) -> Result<Segment, ArchiveError> {
    handle.block_on(archive.segment_bytes(name)).and_then(|bytes| archive.open_segment(name, &bytes, keys))
}

/// In memory and in a directory, plain and encrypted.
fn each(test: impl Fn(&Handle, Place, &Keys)) {
    blocking(|handle| {
        for keys in [Keys::default(), keys()] {
            test(handle, Place::in_memory(), &keys);
            let dir = tempfile::tempdir().unwrap();
            let location: Location = dir.path().join("archive").to_str().unwrap().parse().unwrap();
            test(handle, location.open().unwrap(), &keys);
        }
    });
}

#[test]
fn what_was_written_is_listed_and_read_again() {
    each(|handle, place, keys| {
        let recipients = keys.recipients();
        let archive = Archive::of(place.clone(), CLUSTER);
        assert_eq!(handle.block_on(archive.catalogue()).unwrap(), Catalogue::default());
        let state = state(20 << 20);
        let base = put_base(&archive, handle, &manifest(5), &recipients, |sink| sink.write_all(&state)).unwrap();
        assert!(base.bytes > 16 << 20, "more than one part");
        let mut names = Vec::new();
        for (first, last) in [(6, 9), (10, 10), (11, 30)] {
            names.push(put_piece(handle, &archive, (first, last), &recipients).0);
        }
        let again = put_piece(handle, &archive, (6, 9), &recipients).0;
        assert_eq!(again == names[0], keys.is_none(), "encrypted, the bytes are others each time");

        let found = handle.block_on(Archive::find(place.clone(), None)).unwrap();
        let catalogue = handle.block_on(found.catalogue()).unwrap();
        assert_eq!(catalogue.bases, [base.name()]);
        assert_eq!(catalogue.unfinished, []);
        let plan = catalogue.plan(Target::Latest).unwrap();
        assert_eq!(plan.segments.len(), 3);
        assert_eq!(handle.block_on(found.manifest(&plan.base)).unwrap(), base);
        assert_eq!(read_all(&found, handle, &base, keys).unwrap(), state);
        archive.check_base(handle, &base).unwrap();
        for (name, (first, last)) in names.iter().zip([(6, 9), (10, 10), (11, 30)]) {
            let segment = segment_of(&found, handle, name, keys).unwrap();
            assert_eq!((segment.entries, segment.head.last), (entries(first, last), position(last)));
        }
        assert_eq!(handle.block_on(found.segments_after(&names[1])).unwrap(), names[2..]);

        handle.block_on(archive.remove_base(&base.name())).unwrap();
        handle.block_on(archive.remove_segments(&names[..1])).unwrap();
        handle.block_on(archive.remove_segments(&names[..1])).expect("gone is gone");
        let left = handle.block_on(archive.catalogue()).unwrap();
        assert_eq!((left.bases.len(), left.unfinished.len()), (0, 0));
        assert!(!left.segments.contains(&names[0]) && left.segments.contains(&names[1]));
    });
}

#[test]
fn a_base_whose_writer_failed_or_died_is_none() {
    each(|handle, place, keys| {
        let archive = Archive::of(place, CLUSTER);
        let failed = put_base(&archive, handle, &manifest(5), &keys.recipients(), |sink| {
            sink.write_all(&state(10 << 20))?;
            Err(io::Error::other("the disk is gone"))
        });
        assert!(failed.unwrap_err().to_string().contains("the disk is gone"));
        let whole = put_base(&archive, handle, &manifest(6), &keys.recipients(), |sink| sink.write_all(b"s")).unwrap();
        let path = archive.base_dir(&whole.name()).join(MANIFEST);
        handle.block_on(archive.store().delete(&path)).unwrap();
        let catalogue = handle.block_on(archive.catalogue()).unwrap();
        assert_eq!((catalogue.bases, catalogue.unfinished), (vec![], vec![whole.name()]));
    });
}

#[test]
fn damage_of_any_object_is_found_and_named() {
    each(|handle, place, keys| {
        let archive = Archive::of(place, CLUSTER);
        let recipients = keys.recipients();
        let base = put_base(&archive, handle, &manifest(5), &recipients, |sink| sink.write_all(&state(9_000))).unwrap();
        let name = put_piece(handle, &archive, (6, 9), &recipients).0;
        let damage = |path: &Path, at: usize, is_cut: bool| {
            let bytes = handle.block_on(async { archive.store().get(path).await?.bytes().await }).unwrap();
            let mut other = bytes.to_vec();
            if is_cut {
                other.truncate(at)
            } else {
                other[at] ^= 1
            }
            handle.block_on(archive.store().put(path, other.into())).unwrap();
            bytes
        };
        let restore =
            |path: &Path, bytes: Bytes| drop(handle.block_on(archive.store().put(path, bytes.into())).unwrap());
        for (at, is_cut) in [(0, false), (100, false), (5_000, false), (5_000, true), (base.bytes as usize - 1, true)] {
            let path = archive.state_path(&base);
            let bytes = damage(&path, at, is_cut);
            let said = read_all(&archive, handle, &base, keys).unwrap_err().to_string();
            assert!(said.contains("is damaged") && said.contains(&base.name().to_string()), "{said}");
            archive.check_base(handle, &base).unwrap_err();
            restore(&path, bytes);
        }
        for is_cut in [false, true] {
            let path = archive.segment_path(&name);
            let bytes = damage(&path, 30, is_cut);
            let said = segment_of(&archive, handle, &name, keys).unwrap_err().to_string();
            assert!(said.contains("is damaged") && said.contains(&name.to_string()), "{said}");
            handle.block_on(archive.check_segment(&name)).unwrap_err();
            restore(&path, bytes);
        }
        let path = archive.base_dir(&base.name()).join(MANIFEST);
        let json = String::from_utf8(damage(&path, 0, false).to_vec()).unwrap();
        let said = handle.block_on(archive.manifest(&base.name())).unwrap_err().to_string();
        assert!(said.contains("manifest.json is damaged"), "{said}");
        for (from, to, words) in [
            ("\"revision\": 50", "\"revision\": 51", "of another base"),
            ("abc\"", "abd\"", "among those of another"),
            ("\"format\": 1", "\"format\": 9", "has format 9, and this build reads version 1"),
        ] {
            restore(&path, json.replacen(from, to, 1).into_bytes().into());
            let said = handle.block_on(archive.manifest(&base.name())).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
    });
}

#[test]
fn a_build_reads_the_manifests_of_the_release_before() {
    blocking(|handle| {
        let archive = Archive::of(Place::in_memory(), CLUSTER);
        let base =
            put_base(&archive, handle, &manifest(5), &Recipients::default(), |sink| sink.write_all(b"s")).unwrap();
        let next = Versions::new(1, 2, 2);
        let read = |known| handle.block_on(archive.manifest_of(known, &base.name()));
        assert_eq!(read(next).unwrap(), base);
        let path = archive.base_dir(&base.name()).join(MANIFEST);
        // One of the next format, and one of a build that did not note the format of its entries.
        let mut json = serde_json::to_value(&base).unwrap();
        json["format"] = 2.into();
        json.as_object_mut().unwrap().remove("entry_format");
        handle.block_on(archive.store().put(&path, json.to_string().into())).unwrap();
        assert_eq!(read(next).unwrap(), BaseManifest { format: 2, ..base.clone() });
        assert!(matches!(read(FORMATS), Err(ArchiveError::UnknownFormat { found: 2, .. })));
    });
}

#[test]
fn without_the_key_it_is_locked_and_its_bytes_can_still_be_checked() {
    blocking(|handle| {
        let (right, wrong) = (keys(), keys());
        let archive = Archive::of(Place::in_memory(), CLUSTER);
        let recipients = right.recipients();
        let base = put_base(&archive, handle, &manifest(5), &recipients, |sink| sink.write_all(b"state")).unwrap();
        let name = put_piece(handle, &archive, (6, 9), &recipients).0;
        assert_eq!(base.recipients, recipients.names().collect::<Vec<_>>());
        for keys in [Keys::default(), wrong] {
            let said = read_all(&archive, handle, &base, &keys).unwrap_err();
            assert!(matches!(said, ArchiveError::Locked { .. }), "{said}");
            let said = segment_of(&archive, handle, &name, &keys).unwrap_err();
            assert!(matches!(said, ArchiveError::Locked { .. }), "{said}");
        }
        archive.check_base(handle, &base).unwrap();
        handle.block_on(archive.check_segment(&name)).unwrap();
    });
}

#[test]
fn of_several_clusters_one_has_to_be_named() {
    blocking(|handle| {
        let place = Place::in_memory();
        let find = |wanted| handle.block_on(Archive::find(place.clone(), wanted)).map(|found| found.cluster());
        let said = find(None).unwrap_err().to_string();
        assert!(said.contains("there is no archive") && said.contains("which is empty"), "{said}");
        for cluster in [1, 2] {
            let archive = Archive::of(place.clone(), cluster);
            put_piece(handle, &archive, (0, 1), &Recipients::default());
        }
        let said = find(None).unwrap_err().to_string();
        assert!(said.contains("several clusters") && said.contains("--cluster"), "{said}");
        assert_eq!(find(Some(2)).unwrap(), 2);
        assert!(find(Some(3)).unwrap_err().to_string().contains("holds no archive of cluster"));
        let part = Place { prefix: Path::from(names::cluster_dir(1)), ..place.clone() };
        assert_eq!(handle.block_on(Archive::find(part, None)).unwrap().cluster(), 1);
    });
}

#[test]
fn the_part_of_a_cluster_may_be_named_itself() {
    blocking(|handle| {
        let home = tempfile::tempdir().unwrap();
        let located = |path: std::path::PathBuf| path.to_str().unwrap().parse::<Location>().unwrap();
        let whole = located(home.path().to_owned()).open().unwrap();
        for cluster in [1, 2] {
            let archive = Archive::of(whole.clone(), cluster);
            put_piece(handle, &archive, (0, 1), &Recipients::default());
        }
        let part = located(home.path().join(names::cluster_dir(2))).open_existing().unwrap();
        for wanted in [None, Some(2)] {
            let found = handle.block_on(Archive::find(part.clone(), wanted)).unwrap();
            assert_eq!((found.cluster(), found.to_string()), (2, Archive::of(whole.clone(), 2).to_string()));
            assert_eq!(handle.block_on(found.catalogue()).unwrap().segments.len(), 1);
        }
        let said = handle.block_on(Archive::find(part, Some(1))).unwrap_err().to_string();
        assert!(said.contains("is the archive of cluster") && said.contains("not of"), "{said}");
        let bucket =
            Place { shown: format!("s3://bucket/{}", names::cluster_dir(2)), directory: None, ..Place::in_memory() };
        let bucket = Place { prefix: Path::from(names::cluster_dir(2)), ..bucket };
        let found = handle.block_on(Archive::find(bucket, None)).unwrap();
        assert_eq!(found.to_string(), format!("s3://bucket/{}", names::cluster_dir(2)));
    });
}

#[test]
fn a_directory_is_marked_and_a_store_needs_no_mark() {
    let home = tempfile::tempdir().unwrap();
    let location = home.path().to_str().unwrap().parse::<Location>().unwrap();
    let archive = Archive::of(location.open().unwrap(), CLUSTER);
    assert_eq!(archive.mark(), location.mark(CLUSTER));
    let mark = archive.mark().expect("it is a directory");
    assert!(!mark.exists(), "it may be one on which nothing is mounted");
    archive.prepare(0).unwrap();
    assert!(mark.exists());
    assert_eq!(Archive::of(Place::in_memory(), CLUSTER).mark(), None);
}

#[test]
fn the_last_try_of_a_restore_is_remembered() {
    blocking(|handle| {
        let archive = Archive::of(Place::in_memory(), CLUSTER);
        assert_eq!(handle.block_on(archive.verified()).unwrap(), None);
        let verified = Verified {
            fault: Some("damaged".into()),
            ..Verified { at: 1, node: 2, index: 3, revision: 4, wall: 5, ..Verified::default() }
        };
        handle.block_on(archive.note_verified(&verified)).unwrap();
        assert_eq!(handle.block_on(archive.verified()).unwrap(), Some(verified));
    });
}

#[test]
fn what_somebody_without_the_key_of_macs_noted_is_not_taken() {
    blocking(|handle| {
        let place = Place::in_memory();
        let archive = |cluster: u128, macs: MacKeys| Archive::of(place.clone(), cluster).with_macs(macs);
        let (ours, foreign) = (archive(CLUSTER, macs("a")), archive(CLUSTER, macs("b")));
        let (open, elsewhere) = (archive(CLUSTER, MacKeys::default()), archive(CLUSTER + 1, macs("a")));
        let refused = |archive: &Archive| handle.block_on(archive.verified()).unwrap_err();
        let put = |archive: &Archive, text: String| {
            let path = archive.root.clone().join(VERIFIED);
            handle.block_on(archive.store().put(&path, text.into_bytes().into())).unwrap();
        };
        // Its fault looks like the place of a MAC.
        let verified = Verified { at: 1, index: 3, fault: Some(mac::BLANK.to_owned()), ..Verified::default() };
        handle.block_on(ours.note_verified(&verified)).unwrap();
        for reader in [&ours, &open] {
            assert_eq!(handle.block_on(reader.verified()).unwrap().as_ref(), Some(&verified));
        }
        let written = handle.block_on(ours.small(&ours.root.clone().join(VERIFIED), VERIFIED)).unwrap();
        let written = String::from_utf8(written.to_vec()).unwrap();
        let changed = written.replace("\"index\": 3", "\"index\": 9");
        assert_ne!(changed, written);
        put(&ours, changed);
        put(&elsewhere, written.clone());
        for archive in [&ours, &elsewhere, &foreign] {
            let said = refused(archive);
            let is_forged = matches!(said, ArchiveError::Forged { .. });
            assert!(is_forged && said.to_string().starts_with(VERIFIED), "{said}");
        }
        put(&ours, written);
        assert!(matches!(refused(&foreign), ArchiveError::Forged { .. }), "by another key");
        handle.block_on(open.note_verified(&verified)).unwrap();
        let said = refused(&ours);
        assert!(matches!(said, ArchiveError::Locked { .. }) && said.is_of_an_object(), "{said}");
        assert!(said.to_string().starts_with("verified.json has no MAC"), "{said}");
        // The next try notes it anew.
        handle.block_on(ours.note_verified(&verified)).unwrap();
        assert_eq!(handle.block_on(ours.verified()).unwrap(), Some(verified));
    });
}

/// Writes a piece for each stretch of entries; their names, with their bytes.
fn put_pieces(handle: &Handle, archive: &Archive, stretches: &[(u64, u64)], recipients: &Recipients) -> Vec<Listed> {
    stretches.iter().map(|stretch| put_piece(handle, archive, *stretch, recipients)).collect()
}

const STRETCHES: [(u64, u64); 5] = [(6, 9), (8, 12), (10, 10), (11, 30), (31, 31)];
const RATE: u64 = 1 << 30;

fn names_of(objects: &[Listed]) -> Vec<SegmentName> {
    objects.iter().map(|(name, _)| name.clone()).collect()
}

/// The entries of all pieces of a bundle, which are read from the one of this place on.
fn read_bundle(
    handle: &Handle,
    archive: &Archive,
    name: &SegmentName,
    keys: &Keys,
    from: usize,
) -> Result<Vec<Vec<Bytes>>, ArchiveError> {
    let mut bundle = handle.block_on(archive.open_bundle(name))?;
    let pieces: Vec<_> = bundle.pieces().skip(from).cloned().collect();
    let mut read = |piece: &SegmentName| handle.block_on(bundle.segment(piece, keys)).map(|segment| segment.entries);
    pieces.iter().map(&mut read).collect()
}

#[test]
fn pieces_become_one_object_which_holds_them_as_they_were() {
    each(|handle, place, keys| {
        let archive = Archive::of(place, CLUSTER);
        let pieces = put_pieces(handle, &archive, &STRETCHES, &keys.recipients());
        // Nobody needs a key to merge.
        let small = handle.block_on(archive.merge(&pieces[..3], RATE)).unwrap();
        handle.block_on(archive.remove_segments(&names_of(&pieces[..3]))).unwrap();
        let listed = handle.block_on(archive.segments()).unwrap();
        let bundle = handle.block_on(archive.merge(&listed, RATE)).unwrap();
        assert_eq!((bundle.first, bundle.last, bundle.revision, bundle.wall), (6, 31, Some(310), 31_000));
        // Both are there until one goes. A merge that goes on there makes nothing new.
        let listed = handle.block_on(archive.segments()).unwrap();
        assert_eq!(listed.len(), 4);
        assert_eq!(handle.block_on(archive.merge(&listed, RATE)).unwrap(), bundle);
        let gone: Vec<_> = names_of(&listed).into_iter().filter(|name| *name != bundle).collect();
        assert!(gone.contains(&small));
        handle.block_on(archive.remove_segments(&gone)).unwrap();
        let catalogue = handle.block_on(archive.catalogue()).unwrap();
        assert_eq!(catalogue.segments, std::slice::from_ref(&bundle));
        assert_eq!(
            handle.block_on(archive.check_segment(&bundle)).unwrap(),
            pieces.iter().map(|(_, bytes)| bytes).sum::<u64>()
        );
        for from in 0..STRETCHES.len() {
            let expected: Vec<_> = STRETCHES[from..].iter().map(|(first, last)| entries(*first, *last)).collect();
            assert_eq!(read_bundle(handle, &archive, &bundle, keys, from).unwrap(), expected);
        }
        assert_eq!(handle.block_on(archive.segments_after(&pieces[1].0)).unwrap(), [], "it begins before that");
    });
}

#[test]
fn what_somebody_without_the_key_of_macs_wrote_is_not_taken() {
    each(|handle, place, keys| {
        let archive = |macs: MacKeys| Archive::of(place.clone(), CLUSTER).with_macs(macs);
        let (ours, foreign, open) = (archive(macs("a")), archive(macs("b")), archive(MacKeys::default()));
        let put = |archive: &Archive, index: u64| {
            let (base, recipients) = (manifest(index), keys.recipients());
            put_base(archive, handle, &base, &recipients, |sink| sink.write_all(b"state")).unwrap();
            (base.name(), put_piece(handle, archive, (index + 1, index + 3), &recipients).0)
        };
        let (base, piece) = put(&ours, 10);
        for reader in [&ours, &open] {
            let read = handle.block_on(reader.manifest(&base)).unwrap();
            assert_eq!(read_all(reader, handle, &read, keys).unwrap(), b"state");
            assert_eq!(segment_of(reader, handle, &piece, keys).unwrap().entries, entries(11, 13));
            handle.block_on(reader.prove_segment(&piece)).unwrap();
        }
        let is_forged: fn(&ArchiveError) -> bool = |error| matches!(error, ArchiveError::Forged { .. });
        let is_locked: fn(&ArchiveError) -> bool = |error| matches!(error, ArchiveError::Locked { .. });
        for (writer, index, is_it) in [(&foreign, 20, is_forged), (&open, 30, is_locked)] {
            let (base, piece) = put(writer, index);
            let said = handle.block_on(ours.manifest(&base)).unwrap_err();
            assert!(is_it(&said) && said.to_string().starts_with(&format!("base/{base}/manifest.json")), "{said}");
            let said = segment_of(&ours, handle, &piece, keys).unwrap_err();
            assert!(is_it(&said) && said.to_string().starts_with(&piece.to_string()), "{said}");
            let told = handle.block_on(ours.prove_segment(&piece)).unwrap_err();
            assert!(told.len() == 1 && is_it(&told[0]), "{told:?}");
            // Its bytes are those of its name, and that is all that merging asks.
            handle.block_on(ours.check_segment(&piece)).unwrap();
            handle.block_on(open.manifest(&base)).unwrap();
        }
    });
}

#[test]
fn a_base_is_read_whatever_its_mac_is() {
    blocking(|handle| {
        let open = Archive::of(Place::in_memory(), CLUSTER);
        let (ours, foreign) = (open.clone().with_macs(macs("a")), open.clone().with_macs(macs("b")));
        for (writer, index) in [(&ours, 10), (&foreign, 20), (&open, 30)] {
            put_base(writer, handle, &manifest(index), &Recipients::default(), |sink| sink.write_all(b"state"))
                .unwrap();
        }
        let proven = |archive: &Archive, index: u64| {
            let (bytes, wrong) = archive.prove_base(handle, &manifest(index).name());
            let kind = |error: &ArchiveError| match error {
                ArchiveError::Damaged { .. } => "damaged",
                ArchiveError::Forged { .. } => "forged",
                ArchiveError::Locked { .. } => "locked",
                other => panic!("{other}"),
            };
            (bytes > 0, wrong.iter().map(kind).collect::<Vec<_>>())
        };
        for (index, unproven) in [(10, vec![]), (20, vec!["forged"]), (30, vec!["locked"])] {
            assert_eq!(proven(&ours, index), (true, unproven.clone()));
            assert_eq!(proven(&open, index), (true, vec![]));
            // Another state in its place: the manifest stays.
            let unfinished = manifest(index);
            open.upload_base(handle, &unfinished, &Recipients::default(), |sink| sink.write_all(b"other")).unwrap();
            assert_eq!(proven(&ours, index), (true, [vec!["damaged"], unproven].concat()));
            assert_eq!(proven(&open, index), (true, vec!["damaged"]));
        }
        let (bytes, wrong) = ours.prove_base(handle, &manifest(40).name());
        assert!(bytes == 0 && wrong.len() == 1 && wrong[0].is_not_found(), "{wrong:?}");
    });
}

#[test]
fn a_bundle_proves_each_of_its_pieces() {
    blocking(|handle| {
        let place = Place::in_memory();
        let ours = Archive::of(place.clone(), CLUSTER).with_macs(macs("a"));
        let open = Archive::of(place, CLUSTER);
        put_pieces(handle, &ours, &STRETCHES[..1], &Recipients::default());
        let pieces = put_pieces(handle, &open, &STRETCHES[1..], &Recipients::default());
        let all = handle.block_on(ours.segments()).unwrap();
        assert_eq!(all.len(), STRETCHES.len());
        let bundle = handle.block_on(ours.merge(&all, RATE)).unwrap();
        let told = handle.block_on(ours.prove_segment(&bundle)).unwrap_err();
        assert!(matches!(told[..], [ArchiveError::Locked { .. }]), "one of {} is told: {told:?}", pieces.len());
        assert!(told[0].to_string().contains(&format!(" in {bundle} has no MAC")), "{}", told[0]);
        let mut opened = handle.block_on(ours.open_bundle(&bundle)).unwrap();
        let names: Vec<_> = opened.pieces().cloned().collect();
        let first = handle.block_on(opened.segment(&names[0], &Keys::default()));
        let second = handle.block_on(opened.segment(&names[1], &Keys::default()));
        assert!(first.is_ok() && matches!(second, Err(ArchiveError::Locked { .. })), "{second:?}");
    });
}

#[test]
fn of_many_pieces_by_another_key_one_is_told_and_none_counts_as_damaged() {
    blocking(|handle| {
        let place = Place::in_memory();
        let by = |secret: &str| Archive::of(place.clone(), CLUSTER).with_macs(macs(secret));
        let (ours, foreign) = (by("a"), by("b"));
        let stretches: Vec<_> = (1..=20).map(|index| (index, index)).collect();
        put_pieces(handle, &foreign, &stretches, &Recipients::default());
        put_pieces(handle, &Archive::of(place.clone(), CLUSTER), &[(21, 21)], &Recipients::default());
        let all = handle.block_on(ours.segments()).unwrap();
        let bundle = handle.block_on(ours.merge(&all, RATE)).unwrap();
        let told = handle.block_on(ours.prove_segment(&bundle)).unwrap_err();
        let is_told = matches!(told[..], [ArchiveError::Locked { .. }, ArchiveError::Forged { .. }]);
        assert!(is_told && told.iter().all(|error| error.to_string().contains(&format!(" in {bundle} "))), "{told:?}");
    });
}

#[test]
fn leaders_that_merge_the_same_pieces_make_the_same_object() {
    blocking(|handle| {
        let archive = Archive::of(Place::in_memory(), CLUSTER);
        let pieces = put_pieces(handle, &archive, &STRETCHES, &keys().recipients());
        let all = handle.block_on(archive.merge(&pieces, RATE)).unwrap();
        let some = handle.block_on(archive.merge(&pieces[1..4], RATE)).unwrap();
        let objects = handle.block_on(archive.segments()).unwrap();
        assert_eq!(handle.block_on(archive.merge(&objects, RATE)).unwrap(), all);
        assert_ne!(some, all);
        // One that was merged away meanwhile is told as such, and nothing is written.
        handle.block_on(archive.remove_segments(&[pieces[0].0.clone(), all.clone()])).unwrap();
        match handle.block_on(archive.merge(&pieces, RATE)) {
            Err(NotMerged::Object(object, error)) => assert!(*object == pieces[0].0 && error.is_not_found()),
            other => panic!("{other:?}"),
        }
        assert!(!names_of(&handle.block_on(archive.segments()).unwrap()).contains(&all));
    });
}

#[test]
fn a_damaged_piece_is_not_merged_and_in_a_bundle_it_alone_is_damaged() {
    blocking(|handle| {
        let archive = Archive::of(Place::in_memory(), CLUSTER);
        let none = Keys::default();
        let pieces = put_pieces(handle, &archive, &STRETCHES, &Recipients::default());
        let replace = |name: &SegmentName, bytes: Vec<u8>| {
            handle.block_on(archive.store().put(&archive.segment_path(name), bytes.into())).unwrap();
        };
        let flipped = |bytes: &[u8], at: usize| {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= 1;
            bytes
        };
        let third = &pieces[2].0;
        let sound = handle.block_on(archive.segment_bytes(third)).unwrap();
        replace(third, flipped(&sound, 40));
        match handle.block_on(archive.merge(&pieces, RATE)) {
            Err(NotMerged::Object(object, error)) => {
                assert!(*object == *third && matches!(*error, ArchiveError::Damaged { .. }), "{object}: {error}");
            }
            other => panic!("{other:?}"),
        }
        replace(third, sound.to_vec());
        let bundle = handle.block_on(archive.merge(&pieces, RATE)).unwrap();
        let whole = handle.block_on(archive.segment_bytes(&bundle)).unwrap();
        let at = |place: usize| {
            let behind: u64 = pieces[place..].iter().map(|(_, bytes)| bytes).sum();
            whole.len() - behind as usize
        };
        let said = |errors: Vec<ArchiveError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
        // One piece: it is named, and the others are to be had.
        replace(&bundle, flipped(&whole, at(2) + 40));
        let faults = said(handle.block_on(archive.check_segment(&bundle)).unwrap_err());
        assert!(faults.len() == 1 && faults[0].starts_with(&format!("{third} in {bundle} is damaged")), "{faults:?}");
        assert_eq!(read_bundle(handle, &archive, &bundle, &none, 3).unwrap().len(), 2);
        assert!(read_bundle(handle, &archive, &bundle, &none, 2).unwrap_err().to_string().starts_with(&faults[0]));
        // From the pieces that are still there it is made anew.
        let listed = handle.block_on(archive.segments()).unwrap();
        assert_eq!(handle.block_on(archive.merge(&listed, RATE)).unwrap(), bundle);
        handle.block_on(archive.check_segment(&bundle)).unwrap();
        // Cut short, longer, and with a damaged index.
        for (bytes, words) in [
            (whole[..at(3) + 5].to_vec(), "it ends within its piece"),
            ([&whole[..], b"x"].concat(), "more is behind its last piece"),
            (flipped(&whole, 20), "its index is not the one that was written"),
            (whole[..10].to_vec(), "it is cut short"),
        ] {
            replace(&bundle, bytes);
            let faults = said(handle.block_on(archive.check_segment(&bundle)).unwrap_err());
            assert!(faults.len() == 1 && faults[0].contains(words), "{faults:?}");
        }
    });
}

#[test]
fn the_names_of_a_year_are_listed_and_planned_within_seconds() {
    blocking(|handle| {
        let archive = Archive::of(Place::in_memory(), CLUSTER);
        // A gigabyte a day, as it is once it was merged.
        let count = 10_000;
        for n in 0..count {
            let (first, last) = (700 * n + 1, 700 * (n + 1));
            let (wall_min, wall) = (5_000 * first, 5_000 * last);
            let name = SegmentName { first, last, revision: None, wall_min, wall, checksum: n, form: Form::Bundle };
            let path = archive.segment_path(&name);
            handle.block_on(archive.store().put(&path, "".into())).unwrap();
        }
        let base =
            put_base(&archive, handle, &manifest(0), &Recipients::default(), |sink| sink.write_all(b"s")).unwrap();
        #[expect(clippy::disallowed_methods, reason = "how long it takes changes nothing")]
        let begun = std::time::Instant::now();
        let catalogue = handle.block_on(archive.catalogue()).unwrap();
        let plan = catalogue.plan(Target::Time(5_000 * 700 * count - 1_000)).unwrap();
        assert_eq!((plan.base, plan.segments.len() as u64), (base.name(), count));
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    });
}
