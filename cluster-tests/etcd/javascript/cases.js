// What npm's etcd3 offers, as cases that say what they saw: one line each, "ok NAME" or "failed NAME: WHY".

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Etcd3, EtcdLockFailedError, LeaseState } from 'etcd3';

const hosts = process.argv[2].split(',').map(address => `http://${address}`);
// Where servers.py, the keeper, keeps servers that may be killed; nothing for servers of others.
const { CONFORMANCE_SERVERS: kept, CONFORMANCE_KEEPER: keeper, CONFORMANCE_ROOT_PASSWORD: rootPassword } = process.env;

// Of the package's Isolation, which is there for TypeScript only.
const ISOLATIONS = { serializableSnapshot: 0, serializable: 1, repeatableReads: 2, readCommitted: 3 };

// No case takes longer, unless it hangs.
const PATIENCE = 60_000;

const cases = {};

async function within(milliseconds, what, promise) {
    const timer = new AbortController();
    const late = sleep(milliseconds, undefined, { signal: timer.signal }).then(() => {
        throw new Error(`${what}: not within ${milliseconds} ms`);
    });
    try {
        return await Promise.race([promise, late]);
    } finally {
        timer.abort();
        late.catch(() => undefined);
    }
}

async function eventually(milliseconds, what, condition) {
    const deadline = Date.now() + milliseconds;
    while (!(await condition())) {
        if (Date.now() > deadline) {
            throw new Error(`${what}: not within ${milliseconds} ms`);
        }
        await sleep(50);
    }
}

// The events of a watcher, in order.
function recorded(watcher) {
    const seen = [];
    watcher.on('put', (kv, previous) => {
        seen.push({ put: kv.key.toString(), value: kv.value.toString(), revision: kv.mod_revision, previous });
    });
    watcher.on('delete', (kv, previous) => seen.push({ delete: kv.key.toString(), revision: kv.mod_revision, previous }));
    return seen;
}

// --- entries

cases.put_and_get = async etcd => {
    const put = await etcd.put('a').value('one');
    assert.equal(await etcd.get('a').string(), 'one');
    assert.equal(await etcd.get('a'), 'one');
    const answer = await etcd.get('a').exec();
    assert.equal(answer.kvs[0].mod_revision, put.header.revision);
    assert.equal(answer.kvs[0].version, '1');
    assert.equal(answer.count, '1');
    assert.equal(await etcd.get('nothing').string(), null);
    assert.equal(await etcd.get('nothing').exists(), false);
    assert.equal(await etcd.get('a').exists(), true);
    assert.equal(await etcd.get('a').serializable(true).string(), 'one');
};

cases.values_of_all_kinds = async etcd => {
    await etcd.put('number').value(42);
    await etcd.put('json').value(JSON.stringify({ deep: [1, 2] }));
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
    await etcd.put('bytes').value(bytes);
    assert.equal(await etcd.get('number').number(), 42);
    assert.deepEqual(await etcd.get('json').json(), { deep: [1, 2] });
    assert.deepEqual(await etcd.get('bytes').buffer(), bytes);
};

cases.put_with_the_entry_before_and_touch = async etcd => {
    await etcd.put('a').value('one');
    const previous = await etcd.put('a').value('two').getPrevious();
    assert.equal(previous.value.toString(), 'one');
    await etcd.put('a').touch();
    const { kvs } = await etcd.get('a').exec();
    assert.equal(kvs[0].value.toString(), 'two');
    assert.equal(kvs[0].version, '3');
};

cases.many = async etcd => {
    for (const key of ['c', 'a', 'b']) {
        await etcd.put(`x/${key}`).value(key.charCodeAt(0));
    }
    await etcd.put('y').value('beyond');
    assert.deepEqual(await etcd.getAll().prefix('x/').numbers(), { 'x/a': 97, 'x/b': 98, 'x/c': 99 });
    assert.deepEqual(await etcd.getAll().prefix('x/').keys(), ['x/a', 'x/b', 'x/c']);
    assert.deepEqual(await etcd.getAll().prefix('x/').sort('Create', 'Ascend').keys(), ['x/c', 'x/a', 'x/b']);
    assert.deepEqual(await etcd.getAll().prefix('x/').sort('Value', 'Descend').limit(2).keys(), ['x/c', 'x/b']);
    assert.equal(await etcd.getAll().prefix('x/').count(), 3);
    assert.deepEqual(await etcd.getAll().inRange({ start: 'x/a', end: 'x/c' }).keys(), ['x/a', 'x/b']);
    assert.deepEqual(Object.keys(await etcd.getAll().strings()).length, 4);
    const limited = await etcd.getAll().prefix('x/').limit(1).exec();
    assert.equal(limited.more, true);
    assert.equal(limited.count, '3');
};

cases.older_revisions = async etcd => {
    const first = await etcd.put('a').value('one');
    await etcd.put('a').value('two');
    await etcd.put('b').value('three');
    assert.equal(await etcd.get('a').revision(first.header.revision).string(), 'one');
    assert.deepEqual(await etcd.getAll().minCreateRevision(Number(first.header.revision) + 1).keys(), ['b']);
    assert.deepEqual(await etcd.getAll().maxCreateRevision(first.header.revision).keys(), ['a']);
    assert.deepEqual(await etcd.getAll().maxModRevision(first.header.revision).keys(), []);
    await assert.rejects(etcd.get('a').revision(Number(first.header.revision) + 1_000_000).string(), /future revision/);
};

cases.deletions = async etcd => {
    for (const key of ['a', 'b', 'c', 'd']) {
        await etcd.put(key).value(key);
    }
    assert.equal((await etcd.delete().key('a')).deleted, '1');
    assert.equal((await etcd.delete().key('a')).deleted, '0');
    assert.deepEqual((await etcd.delete().inRange({ start: 'b', end: 'd' }).getPrevious()).map(kv => kv.value.toString()), ['b', 'c']);
    assert.equal((await etcd.delete().all()).deleted, '1');
};

cases.namespaces = async etcd => {
    const inner = etcd.namespace('inner/');
    await inner.put('a').value('one');
    assert.equal(await etcd.get('inner/a').string(), 'one');
    assert.deepEqual(await inner.getAll().strings(), { a: 'one' });
    const watcher = await inner.watch().key('a').create();
    const seen = recorded(watcher);
    await etcd.put('inner/a').value('two');
    await eventually(5000, 'an event', () => seen.length === 1);
    assert.equal(seen[0].put, 'a');
    await watcher.cancel();
};

// --- transactions

cases.transactions = async etcd => {
    await etcd.put('a').value('one');
    const yes = await etcd.if('a', 'Value', '==', 'one').and('b', 'Version', '==', 0)
        .then(etcd.put('b').value('two'), etcd.get('b'), etcd.delete().key('a'))
        .else(etcd.get('a')).commit();
    assert.equal(yes.succeeded, true);
    assert.equal(yes.responses[1].response_range.kvs[0].value.toString(), 'two');
    assert.equal(yes.responses[2].response_delete_range.deleted, '1');
    const no = await etcd.if('a', 'Create', '>', 0).then(etcd.put('a').value('wrong')).else(etcd.getAll()).commit();
    assert.equal(no.succeeded, false);
    assert.deepEqual(no.responses[0].response_range.kvs.map(kv => kv.value.toString()), ['two']);
    const comparisons = [['Version', '<', 2, true], ['Mod', '!=', 1, true], ['Create', '===', 1, false], ['Value', '>', 'a', true]];
    for (const [column, comparison, value, holds] of comparisons) {
        const answer = await etcd.if('b', column, comparison, value).commit();
        assert.equal(answer.succeeded, holds, `${column} ${comparison} ${value}`);
    }
};

cases.nested_transactions = async etcd => {
    const key = name => Buffer.concat([etcd.prefix, Buffer.from(name)]);
    const nested = {
        request_txn: {
            compare: [{ key: key('a'), target: 'Create', result: 'Greater', create_revision: 0 }],
            success: [{ request_put: { key: key('b'), value: Buffer.from('yes') } }],
            failure: [{ request_put: { key: key('b'), value: Buffer.from('no') } }],
        },
    };
    const answer = await etcd.if('a', 'Create', '==', 0).then(etcd.put('a').value('one'), nested).commit();
    assert.equal(answer.succeeded, true);
    // Comparisons see the state before the transaction, nested ones, too.
    assert.equal(answer.responses[1].response_txn.succeeded, false);
    assert.equal(await etcd.get('b').string(), 'no');
};

cases.stm_counts = async etcd => {
    await etcd.put('count').value(0);
    const workers = Array.from({ length: 5 }, async () => {
        for (let turn = 0; turn < 5; turn++) {
            await etcd.stm({ retries: 100 }).transact(async tx => {
                await tx.put('count').value((await tx.get('count').number()) + 1);
            });
        }
    });
    await Promise.all(workers);
    assert.equal(await etcd.get('count').number(), 25);
};

cases.stm_in_every_isolation = async etcd => {
    for (const isolation of Object.values(ISOLATIONS)) {
        await etcd.delete().key('b');
        await etcd.put('gone').value('x');
        // Read last written: what is written must not have changed since.
        await etcd.put('a').value('one');
        await etcd.stm({ isolation }).transact(async tx => {
            assert.equal(await tx.get('a').string(), 'one');
            await tx.put('b').value(`by ${isolation}`);
            await tx.delete().key('gone');
            assert.equal(await tx.get('b').string(), `by ${isolation}`);
        });
        assert.equal(await etcd.get('b').string(), `by ${isolation}`);
        assert.equal(await etcd.get('gone').exists(), false);
    }
};

cases.stm_conflicts = async etcd => {
    await etcd.put('a').value('one');
    let tries = 0;
    await etcd.stm({ retries: 3 }).transact(async tx => {
        const seen = await tx.get('a').string();
        tries += 1;
        if (tries === 1) {
            await etcd.put('a').value('two');
        }
        await tx.put('b').value(seen);
    });
    assert.equal(tries, 2);
    assert.equal(await etcd.get('b').string(), 'two');
};

// --- watches

cases.watch = async etcd => {
    const watcher = await etcd.watch().prefix('w/').withPreviousKV().create();
    const seen = recorded(watcher);
    await etcd.put('w/a').value('one');
    await etcd.put('x').value('beyond');
    await etcd.put('w/a').value('two');
    await etcd.delete().key('w/a');
    await eventually(5000, 'three events', () => seen.length === 3);
    assert.deepEqual(seen.map(each => each.value), ['one', 'two', undefined]);
    assert.deepEqual(seen.map(each => each.previous?.value.toString()), [undefined, 'one', 'two']);
    assert.equal(seen[2].delete, 'w/a');
    await watcher.cancel();
    await etcd.put('w/a').value('three');
    await sleep(300);
    assert.equal(seen.length, 3);
};

cases.watch_filters = async etcd => {
    // This client's ignore() does the same as its only().
    const puts = await etcd.watch().prefix('').only('put').create();
    const deletes = await etcd.watch().prefix('').only('delete').create();
    const seen = [recorded(puts), recorded(deletes)];
    await etcd.put('a').value('one');
    await etcd.delete().key('a');
    await etcd.put('a').value('two');
    await eventually(5000, 'all events', () => seen[0].length === 2 && seen[1].length === 1);
    await Promise.all([puts.cancel(), deletes.cancel()]);
};

cases.watch_from_a_revision = async etcd => {
    const first = await etcd.put('a').value('one');
    await etcd.put('a').value('two');
    const watcher = await etcd.watch().key('a').startRevision(first.header.revision).create();
    const seen = recorded(watcher);
    await eventually(5000, 'both', () => seen.length === 2);
    assert.deepEqual(seen.map(each => each.value), ['one', 'two']);
    await watcher.cancel();
};

cases.many_watches = async etcd => {
    const watchers = await Promise.all(Array.from({ length: 100 }, (_, number) => etcd.watch().key(`${number}`).create()));
    const seen = watchers.map(recorded);
    await Promise.all(watchers.map((_, number) => etcd.put(`${number}`).value(number)));
    await eventually(10_000, 'an event each', () => seen.every(each => each.length === 1));
    await Promise.all(watchers.map(each => each.cancel()));
};

cases.watch_from_a_compacted_revision = async etcd => {
    const first = await etcd.put('a').value('one');
    const last = await etcd.put('a').value('two');
    await etcd.kv.compact({ revision: last.header.revision });
    const watcher = etcd.watch().key('a').startRevision(first.header.revision).watcher();
    const [error] = await within(5000, 'an error', once(watcher, 'error').catch(error => [error]));
    assert.match(error.message, /canceled/i);
};

// --- leases

cases.lease = async etcd => {
    const lease = etcd.lease(60, { autoKeepAlive: false });
    await lease.put('a').value('one');
    const id = await lease.grant();
    assert.equal(lease.state, LeaseState.Alive);
    assert.equal((await etcd.get('a').exec()).kvs[0].lease, id);
    assert.equal((await lease.keepaliveOnce()).TTL, '60');
    const left = await etcd.leaseClient.leaseTimeToLive({ ID: id, keys: true });
    assert.deepEqual(left.keys.map(key => key.toString()), [`${etcd.prefix}a`]);
    const all = await etcd.leaseClient.leaseLeases();
    assert.ok(all.leases.some(each => each.ID === id));
    await lease.revoke();
    assert.equal(lease.revoked(), true);
    assert.equal(await etcd.get('a').exists(), false);
};

cases.lease_is_kept_alive = async etcd => {
    const lease = etcd.lease(2);
    const fired = [];
    lease.on('keepaliveFired', () => fired.push('fired'));
    lease.on('keepaliveSucceeded', answer => fired.push(answer.TTL));
    await lease.put('a').value('one');
    await sleep(5000);
    assert.equal(await etcd.get('a').string(), 'one');
    assert.ok(fired.filter(each => each === '2').length >= 3, `${fired}`);
    lease.release();
    await eventually(15_000, 'the entry goes when nobody renews', async () => !(await etcd.get('a').exists()));
};

cases.lease_is_lost = async etcd => {
    const lease = etcd.lease(2);
    const id = await lease.grant();
    const lost = once(lease, 'lost');
    await etcd.leaseClient.leaseRevoke({ ID: id });
    const [error] = await within(10_000, 'lost', lost);
    assert.match(error.constructor.name, /Lease/);
    assert.equal(lease.revoked(), true);
};

cases.what_needs_a_lease_is_refused = async etcd => {
    await assert.rejects(etcd.put('a').value('one').lease('12345'), /requested lease not found/);
    await assert.rejects(etcd.leaseClient.leaseRevoke({ ID: '12345' }), /requested lease not found/);
};

// --- locks and elections

cases.lock = async etcd => {
    const lock = etcd.lock('l').ttl(30);
    await lock.acquire();
    await assert.rejects(etcd.lock('l').acquire(), EtcdLockFailedError);
    await lock.release();
    assert.equal(await etcd.lock('l').do(() => 'done'), 'done');
    assert.equal(await etcd.get('l').exists(), false);
};

cases.locks_race = async etcd => {
    let inside = 0;
    let entered = 0;
    await Promise.all(Array.from({ length: 5 }, async () => {
        while (true) {
            try {
                return await etcd.lock('l').do(async () => {
                    inside += 1;
                    assert.equal(inside, 1, 'two hold the lock');
                    await sleep(10);
                    inside -= 1;
                    entered += 1;
                });
            } catch (error) {
                if (!(error instanceof EtcdLockFailedError)) {
                    throw error;
                }
                await sleep(20);
            }
        }
    }));
    assert.equal(entered, 5);
};

cases.election = async etcd => {
    const election = etcd.election('e', 5);
    const first = election.campaign('first');
    await within(5000, 'first is elected', first.wait());
    // Not before somebody leads: this client's observer watches a wrong key then.
    const observer = await election.observe();
    const changes = [];
    observer.on('change', leader => changes.push(leader));
    await eventually(5000, 'the observer sees the first', () => observer.leader() === 'first');
    assert.equal(await election.leader(), 'first');
    const second = election.campaign('second');
    const elected = second.wait();
    await first.proclaim('first again');
    await eventually(5000, 'the observer sees the new word', () => observer.leader() === 'first again');
    await first.resign();
    await within(5000, 'second is elected', elected);
    await eventually(5000, 'the observer sees the second', () => observer.leader() === 'second');
    assert.deepEqual(changes.filter(each => each && each !== 'first'), ['first again', 'second']);
    await observer.cancel();
    await second.resign();
    await eventually(5000, 'nobody leads', async () => (await election.leader()) === undefined);
};

// --- the cluster

cases.status_and_members = async etcd => {
    const { members } = await etcd.cluster.memberList({});
    const status = await etcd.maintenance.status();
    assert.ok(members.some(member => member.ID === status.leader));
    assert.match(status.version, /^\d+\.\d+\.\d+$/);
    assert.ok(Number(status.dbSize) > 0);
    for (const member of members) {
        assert.ok(member.name && member.clientURLs.every(url => url.startsWith('http')) && member.peerURLs.length === 1);
    }
};

cases.maintenance = async etcd => {
    await etcd.put('a').value('one');
    await etcd.maintenance.defragment();
    assert.deepEqual((await etcd.maintenance.alarm({ action: 'Get', memberID: '0', alarm: 'None' })).alarms, []);
    // Not hashKV, which this client looks for under another name.
    assert.equal(typeof (await etcd.maintenance.hash()).hash, 'number');
    const snapshot = await etcd.maintenance.snapshot();
    let bytes = 0;
    snapshot.on('data', piece => { bytes += piece.blob.length; });
    await within(10_000, 'the end of the snapshot', once(snapshot, 'end'));
    assert.ok(bytes > 1000);
};

cases.roles_and_users = async etcd => {
    const role = await etcd.role('readers').create();
    const range = etcd.range({ prefix: '/r/' });
    await role.grant({ permission: 'Read', range });
    assert.deepEqual((await role.permissions()).map(each => each.permission), ['Read']);
    // The client has no way to make a user without a password.
    await etcd.auth.userAdd({ name: 'reader', options: { no_password: true } });
    const user = etcd.user('reader');
    await user.addRole(role);
    assert.deepEqual((await user.roles()).map(each => each.name), ['readers']);
    assert.ok((await etcd.getUsers()).some(each => each.name === 'reader'));
    assert.ok((await etcd.getRoles()).some(each => each.name === 'readers'));
    await user.removeRole(role);
    assert.deepEqual(await user.roles(), []);
    await role.revoke({ permission: 'Read', range });
    assert.deepEqual(await role.permissions(), []);
    await user.delete();
    await role.delete();
    assert.ok(!(await etcd.getUsers()).some(each => each.name === 'reader'));
    await assert.rejects(etcd.role('readers').permissions(), /role name not found/);
};

cases.permission_on_one_key = async etcd => {
    const role = await etcd.role('one').create();
    try {
        await role.grant({ permission: 'Readwrite', key: 'one' });
        assert.deepEqual((await role.permissions()).map(each => each.permission), ['Readwrite']);
    } finally {
        await role.delete();
    }
};

cases.users_with_passwords = async etcd => {
    const user = await etcd.user('someone').create('somepw');
    await user.setPassword('another');
    await user.delete();
};

cases.authentication_is_turned_on = async (_, root) => {
    await root.user('root').create('rootpw');
    await root.role('root').create();
    await root.user('root').addRole('root');
    await root.auth.authEnable();
    const admin = new Etcd3({ hosts, auth: { username: 'root', password: 'rootpw' } });
    await admin.auth.authDisable();
    admin.close();
    await root.user('root').delete();
    await root.role('root').delete();
};

// --- servers that ask who calls: root may do all, client what begins with /service/

const loginCases = {};

loginCases.log_in = async (root, user) => {
    await root.put('/other').value('secret');
    await root.put('/service/a').value('one');
    assert.equal(await user.get('/service/a').string(), 'one');
    await user.put('/service/a').value('two');
    assert.deepEqual(await user.getAll().prefix('/service/').strings(), { '/service/a': 'two' });
    await assert.rejects(async () => user.put('/other').value('x'), /permission denied/);
    await assert.rejects(async () => user.get('/other').string(), /permission denied/);
    await assert.rejects(async () => user.getAll().strings(), /permission denied/);
    await assert.rejects(async () => user.getUsers(), /permission denied/);
    const watcher = await user.watch().prefix('/service/').create();
    const seen = recorded(watcher);
    await root.put('/service/a').value('three');
    await eventually(5000, 'an event', () => seen.length === 1);
    await watcher.cancel();
    const lease = user.lease(60);
    await lease.put('/service/leased').value('x');
    await lease.revoke();
};

loginCases.who_cannot_log_in = async () => {
    const nobody = new Etcd3({ hosts });
    await assert.rejects(async () => nobody.get('/service/a').string(), /user name is empty/);
    nobody.close();
    for (const username of ['root', 'nobody']) {
        const wrong = new Etcd3({ hosts, auth: { username, password: 'wrong' } });
        await assert.rejects(async () => wrong.get('/service/a').string(), /authentication failed, invalid user ID or password/);
        wrong.close();
    }
};

// --- nodes that are killed

const keep = (verb, number) => promisify(execFile)(keeper, [verb, kept, `${number}`]);

if (kept) {
    cases.watches_and_leases_outlive_killed_nodes = async etcd => {
        const watcher = await etcd.watch().prefix('w/').create();
        let breaks = 0;
        watcher.on('disconnected', () => { breaks += 1; });
        const seen = recorded(watcher);
        const lease = etcd.lease(15);
        let lost;
        lease.on('lost', error => { lost = error; });
        await lease.put('leased').value('one');
        const written = [];
        let running = true;
        const writer = (async () => {
            for (let number = 0; running; number++) {
                try {
                    await etcd.put(`w/${number}`).value(number);
                    written.push(`w/${number}`);
                } catch {
                    // Not confirmed: it may be seen or not.
                }
                await sleep(20);
            }
        })();
        try {
            // The stream is on one of them.
            for (let number = 1; number <= hosts.length; number++) {
                await keep('kill', number);
                const before = written.length;
                await eventually(20_000, 'writes go on', () => written.length > before + 20);
                await keep('start', number);
            }
            running = false;
            await writer;
            await eventually(10_000, 'all confirmed writes are seen', () => written.every(key => seen.some(each => each.put === key)));
        } finally {
            running = false;
        }
        assert.ok(breaks > 0, 'the watch was never disconnected');
        // A key may come twice, since the client sends a write again where the first answer is lost; a revision may not.
        const revisions = seen.map(each => Number(each.revision));
        assert.deepEqual(revisions, [...new Set(revisions)].sort((one, other) => one - other), 'events came twice or not in order');
        assert.equal(lost, undefined);
    };
}

// --- all of them

async function run(name, body) {
    const root = new Etcd3({ hosts });
    const etcd = root.namespace(`/javascript/${name}-${Date.now()}/`);
    // What else the cases call is not part of a namespace.
    for (const part of ['maintenance', 'cluster', 'auth', 'role', 'user', 'getRoles', 'getUsers']) {
        etcd[part] = typeof root[part] === 'function' ? root[part].bind(root) : root[part];
    }
    try {
        await within(PATIENCE, name, body(etcd, root));
        console.log(`ok ${name}`);
    } catch (error) {
        const where = error.stack?.split('\n').find(line => line.includes('cases.js'))?.trim() ?? '';
        console.log(`failed ${name}: ${error.name} ${error.message.replaceAll('\n', ' ').slice(0, 300)} [${where}]`);
    } finally {
        root.close();
    }
}

const packages = createRequire(import.meta.url);
const of = name => `${name} ${packages(`${name}/package.json`).version}`;
console.log(`${of('etcd3')}, ${of('@grpc/grpc-js')}, Node.js ${process.version}`);
if (rootPassword) {
    const root = new Etcd3({ hosts, auth: { username: 'root', password: rootPassword } });
    const user = new Etcd3({ hosts, auth: { username: 'client', password: process.env.CONFORMANCE_CLIENT_PASSWORD } });
    for (const [name, body] of Object.entries(loginCases)) {
        await run(name, () => body(root, user));
    }
} else {
    for (const [name, body] of Object.entries(cases)) {
        await run(name, body);
    }
}
process.exit(0);
