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

async function ask(path, body, status) {
	const operation = document.paths[path].post;
	const check = ajv.getSchema(pointer('paths', path, 'post', 'requestBody', 'content', 'application/json', 'schema'));
	if (status < 400 && !check(body)) wrong.push(`${path}: the request is not as described: ${ajv.errorsText(check.errors)}`);
	if (status === 422 && check(body)) wrong.push(`${path}: described as right, but refused: ${JSON.stringify(body)}`);
	const answer = await fetch(url + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
	const json = await answer.json();
	if (answer.status !== status) wrong.push(`${path}: ${answer.status}, not ${status}: ${JSON.stringify(json)}`);
	const described = operation.responses[answer.status] ? String(answer.status) : 'default';
	const type = answer.headers.get('content-type');
	const shape = ajv.getSchema(pointer('paths', path, 'post', 'responses', described, 'content', type, 'schema'));
	if (!shape) wrong.push(`${path}: ${answer.status} ${type} is not described`);
	else if (!shape(json)) wrong.push(`${path}: ${JSON.stringify(json)} is not as described: ${ajv.errorsText(shape.errors)}`);
	if (answer.status < 400) {
		const known = Object.keys(document.components.schemas[Object.values(operation.responses)[0].content['application/json'].schema.$ref.split('/').pop()].properties);
		for (const name of Object.keys(json)) if (!known.includes(name)) wrong.push(`${path}: ${name} is not described`);
	}
	return json;
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
console.log(wrong.length ? wrong.join('\n') : 'fine');
process.exit(wrong.length ? 1 : 0);
