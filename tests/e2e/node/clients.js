// tests/e2e/node/clients.js PORT - noh from Node.js, by node-redis (RESP2 and RESP3) and ioredis: what their users do.
// With "restart" as a second word: counts on while the server is restarted under it; told by a line on stdin.
'use strict';
const assert = require('assert');
const port = Number(process.argv[2]);

async function nodeRedis(RESP) {
	const { createClient } = require('redis');
	const client = createClient({ socket: { port, host: '127.0.0.1' }, RESP });
	const k = `n${RESP}:`;
	client.on('error', (e) => { throw e; });
	await client.connect();
	await client.del([k + 'a', k + 'b']);
	assert.equal(await client.incr(k + 'a'), 1);
	assert.equal(await client.incrBy(k + 'a', 41), 42);
	assert.equal(await client.get(k + 'a'), '42');
	assert.equal(await client.set(k + 'b', '7', { EX: 100 }), 'OK');
	assert.ok(await client.ttl(k + 'b') > 90);
	assert.equal(await client.set(k + 'b', '8', { NX: true }), null);
	assert.equal(await client.expire(k + 'a', 50), 1);
	assert.equal(await client.mSet([[k + 'a', '1'], [k + 'b', '2']]), 'OK');
	assert.deepEqual(await client.mGet([k + 'a', k + 'b', k + 'none']), ['1', '2', null]);
	await assert.rejects(client.sendCommand(['NOSUCH']), /unknown command/);
	await assert.rejects(client.set(k + 'a', 'text'), /integer/);
	const many = await Promise.all(Array.from({ length: 500 }, () => client.incr(k + 'a')));
	assert.deepEqual(many, Array.from({ length: 500 }, (_, i) => i + 2));
	assert.equal(await client.sendCommand(['INV.RESTOCK', k + 'sku', '5', 'IDEM', 'x']), 5);
	const [hold, left] = await client.sendCommand(['INV.RESERVE', k + 'sku', '2', 'IDEM', 'y']);
	assert.equal(left, 3);
	assert.equal(await client.sendCommand(['INV.COMMIT', k + 'sku', String(hold)]), 2);
	assert.ok(await client.sendCommand(['ACTOR.STATUS', 'counter:' + k + 'a']));
	const listener = client.duplicate();
	listener.on('error', (e) => { throw e; });
	await listener.connect();
	let hear;
	const heard = new Promise((resolve) => { hear = resolve; });
	await listener.subscribe(k + 'news', hear);
	assert.equal(await client.publish(k + 'news', 'extra'), 1);
	assert.equal(await heard, 'extra');
	await listener.unsubscribe(k + 'news');
	listener.destroy();
	client.destroy();
}

async function ioRedis() {
	const Redis = require('ioredis');
	const client = new Redis({ port, host: '127.0.0.1' });
	await client.del('i:a', 'i:b');
	assert.equal(await client.incr('i:a'), 1);
	assert.equal(await client.set('i:b', 5, 'EX', 100), 'OK');
	assert.deepEqual(await client.mget('i:a', 'i:b', 'i:none'), ['1', '5', null]);
	assert.equal(await client.mset({ 'i:a': 10, 'i:b': 20 }), 'OK');
	assert.equal(await client.expire('i:a', 50), 1);
	const results = await client.pipeline().incr('i:a').get('i:b').call('NOSUCH').incr('i:a').exec();
	assert.deepEqual([results[0][1], results[1][1], results[3][1]], [11, '20', 12]);
	assert.match(results[2][0].message, /unknown command/);
	assert.equal(await client.call('INV.RESTOCK', 'i:sku', 3), 3);
	assert.equal((await client.call('INV.RESERVE', 'i:sku', 3))[1], 0);
	await assert.rejects(client.call('INV.RESERVE', 'i:sku', 1), /OUTOFSTOCK/);
	await assert.rejects(client.call('ACTOR.INVOKE', 'nosuch:x', '0', ''), /NOTYPE/);
	const listener = new Redis({ port, host: '127.0.0.1' });
	await listener.psubscribe('i:*');
	const heard = new Promise((resolve) => listener.on('pmessage', (pattern, channel, text) => resolve([pattern, channel, text])));
	assert.equal(await client.publish('i:news', 'extra'), 1);
	assert.deepEqual(await heard, ['i:*', 'i:news', 'extra']);
	listener.disconnect();
	client.disconnect();
}

// Both reconnect by themselves; what was answered before is there afterwards.
async function restart() {
	const { createClient } = require('redis');
	const Redis = require('ioredis');
	const one = createClient({ socket: { port, host: '127.0.0.1', reconnectStrategy: 50 } });
	const two = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50, maxRetriesPerRequest: null });
	one.on('error', () => {});
	two.on('error', () => {});
	await one.connect();
	const before = [await one.incr('r:one'), await two.incr('r:two')];
	console.log('ready');
	await new Promise((resolve) => process.stdin.once('data', resolve));
	process.stdin.pause();
	assert.deepEqual([await one.incr('r:one'), await two.incr('r:two')], before.map((n) => n + 1));
	one.destroy();
	two.disconnect();
}

(process.argv[3] === 'restart' ? restart() : nodeRedis(2).then(() => nodeRedis(3)).then(ioRedis))
	.then(() => console.log('fine'))
	.catch((e) => { console.log(e.stack || e); process.exit(1); });
