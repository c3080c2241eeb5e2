// tests/e2e/openapi/check.mjs URL - is /openapi.json a valid document, and are real answers what it says? "fine", or why not.
import { Validator } from '@seriousme/openapi-schema-validator';
import Ajv from 'ajv';
import formats from 'ajv-formats';

const url = process.argv[2];
const wrong = [];
const document = await (await fetch(url + '/openapi.json')).json();
const result = await new Validator().validate(structuredClone(document));
if (!result.valid) wrong.push('not a valid document: ' + JSON.stringify(result.errors));

const ajv = new Ajv({ strict: false, allErrors: true });
formats(ajv);
ajv.addSchema(document, 'api');
const pointer = (...parts) => 'api#/' + parts.map(p => encodeURIComponent(p.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/');

// Every operation says in words what it is for, and of each answer what it looks like.
const operations = Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, o]) => ({ path, method, o })));
for (const { path, method, o } of operations) {
	if (!/ /.test(o.summary)) wrong.push(`${method} ${path}: no summary`);
	if (!Object.keys(o.responses).some(status => status < 300)) wrong.push(`${method} ${path}: no answer is described`);
	for (const [status, r] of Object.entries(o.responses)) if (!r.content) wrong.push(`${method} ${path}: what ${status} looks like is not described`);
	for (const p of o.parameters ?? []) if (!p.description || !p.schema) wrong.push(`${method} ${path}: ${p.name} is not described`);
}

// The answer is as described, with no member that is not.
const asked = new Set();
function judge(what, path, method, answer, json, status) {
	const operation = document.paths[path][method];
	asked.add(operation.operationId);
	if (answer.status !== status) wrong.push(`${what}: ${answer.status}, not ${status}: ${JSON.stringify(json)}`);
	const described = operation.responses[answer.status] ? String(answer.status) : 'default';
	const type = answer.headers.get('content-type').split(';')[0];
	const shape = ajv.getSchema(pointer('paths', path, method, 'responses', described, 'content', type, 'schema'));
	if (!shape) wrong.push(`${what}: ${answer.status} ${type} is not described`);
	else if (!shape(json)) wrong.push(`${what}: ${JSON.stringify(json)} is not as described: ${ajv.errorsText(shape.errors)}`);
	if (answer.status < 400 && shape) unknown(what, json, operation.responses[described].content[type].schema);
	return json;
}
const resolve = schema => schema.$ref ? document.components.schemas[schema.$ref.split('/').pop()] : schema;
function unknown(what, json, schema) {
	schema = resolve(schema);
	if (schema.oneOf) schema = resolve(schema.oneOf.find(s => resolve(s).required.every(name => name in json)));
	if (Array.isArray(json)) json.forEach(item => unknown(what, item, schema.items));
	if (!json || typeof json !== 'object' || Array.isArray(json) || !schema.properties) return;
	for (const name of Object.keys(json))
		if (schema.properties[name]) unknown(what, json[name], schema.properties[name]);
		else wrong.push(`${what}: ${name} is not described`);
}

async function ask(path, body, status, headers = {}) {
	const check = ajv.getSchema(pointer('paths', path, 'post', 'requestBody', 'content', 'application/json', 'schema'));
	if (status < 400 && !check(body)) wrong.push(`${path}: the request is not as described: ${ajv.errorsText(check.errors)}`);
	if (status === 422 && check(body)) wrong.push(`${path}: described as right, but refused: ${JSON.stringify(body)}`);
	const answer = await fetch(url + path, { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) });
	return judge(path, path, 'post', answer, await answer.json(), status);
}

async function get(path, query, status) {
	const answer = await fetch(url + path + query);
	const type = answer.headers.get('content-type'), text = await answer.text();
	const json = /json/.test(type) ? JSON.parse(text) : /event-stream/.test(type) ? JSON.parse(text.match(/^data: (.*)$/m)[1]) : text;
	for (const name of new URLSearchParams(query).keys())
		if (status < 400 && !document.paths[path].get.parameters?.some(p => p.name === name)) wrong.push(`${path}: ${name} is not described`);
	return judge(path + query, path, 'get', answer, json, status);
}

const to = (actor_address, message_type, message) => ({ actor_address, message_type, message });
await ask('/actor/send', to('counter:oas', 'incr', {}), 202);
await ask('/actor/invoke', to('counter:oas', 'incr', { by: 2 }), 200);
await ask('/actor/invoke', { ...to('inventory:oas', 'restock', { n: 3 }), timeout_ms: 5000 }, 200);
await ask('/actor/activate', { actor_address: 'counter:oas' }, 200);
await ask('/actor/activate', { actor_address: 'counter:fresh' }, 200);
await ask('/actor/status', { actor_address: 'counter:oas' }, 200);
await ask('/actor/status', { actor_address: 'counter:never' }, 200);
await ask('/actor/list', { limit: 1 }, 200);
await ask('/actor/list', { active_only: false, actor_type: 'counter' }, 200);
await ask('/actor/deactivate', { actor_address: 'counter:oas' }, 200);
await ask('/actor/deactivate', { actor_address: 'counter:oas', force: true }, 200);
await ask('/actor/pool/status', {}, 200);
await ask('/actor/invoke', to('cow:a', 'moo', {}), 404);
await ask('/actor/invoke', { actor_address: 'counter:a' }, 422);
await ask('/actor/invoke', { ...to('counter:a', 'get', {}), timeout_ms: 0 }, 422);
await ask('/actor/list', { limit: 5000 }, 422);
await ask('/actor/pool/status', { nodes: 1 }, 422);

// What waits for later, and its timer.
await ask('/actor/send', { ...to('counter:oas', 'incr', {}), delay_ms: 3600000 }, 202);
await ask('/admin/schedule/list', {}, 200);
await ask('/admin/schedule/list', { actor_address: 'later:counter:oas' }, 200);
await ask('/admin/schedule/cancel', { actor_address: 'later:counter:oas', message_type: 'due' }, 200);
await ask('/admin/schedule/cancel', { actor_address: 'cow:a', message_type: 'moo' }, 404);

// The other paths. Of those that end the server, or that need a message that was set aside, the refusal.
await ask('/admin/dead/list', {}, 200);
await ask('/admin/dead/show', { id: '1-1' }, 404);
await ask('/admin/dead/redrive', { id: '1-1' }, 404);
await ask('/admin/dead/purge', { id: '1-1' }, 404);
await ask('/admin/quarantine/list', {}, 200);
await ask('/admin/quarantine/resume', { actor: 'counter:oas' }, 404);
await ask('/admin/drain/status', {}, 200);
await ask('/admin/drain', { deadline_ms: 0 }, 422);
const reload = await fetch(url + '/admin/config/reload', { method: 'POST' });
judge('/admin/config/reload', '/admin/config/reload', 'post', reload, await reload.json(), 200);
await get('/healthz', '', 200);
await get('/readyz', '', 200);
await get('/metrics', '', 200);
await get('/openapi.json', '', 200);
const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
await ask('/actor/invoke', to('counter:oas', 'incr', {}), 200, { traceparent: `00-${trace}-00f067aa0ba902b7-01` });
await get('/trace', '?limit=5', 200);
await get('/trace', `?id=${trace}`, 200);
await get('/trace', '?id=00000000000000000000000000000001', 404);
await get('/trace', '?id=x', 400);
await get('/trace', '?limit=0', 400);
await get('/actor/describe', '?actor=counter:oas&events=5', 200);
await get('/actor/describe', '', 400);
await get('/actor/tree', '?limit=10', 200);
await get('/actor/tree', '?limits=10', 400);
await get('/events', '?last=5&follow=false', 200);
await get('/events', '?cursor=x', 400);
for (const { o } of operations) if (!asked.has(o.operationId)) wrong.push(`${o.operationId} was not asked for`);
console.log(wrong.length ? wrong.join('\n') : 'fine');
process.exit(wrong.length ? 1 : 0);
