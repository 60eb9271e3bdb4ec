// Writes cases with cedar-wasm's answers, in the form that corpus_test.c reads: those of a seed and the corners of the grammar, or all
// pairs of values and all forms of JSON.
//
//     node write.mjs FOLDER [SEED [SETS [TEXTS]]]
//     node write.mjs --pairs FOLDER
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { Cases } from './cases.mjs';
import * as corners from './corners.mjs';
import * as json from './forms.mjs';
import { conditions as pairs } from './pairs.mjs';
import { Random } from './random.mjs';

const cedar = createRequire(import.meta.url)(process.env.CEDAR_WASM ?? '@cedar-policy/cedar-wasm/nodejs');
const ofPairs = process.argv[2] === '--pairs';
const [folder, seed = '1', sets = '20', texts = '300'] = process.argv.slice(ofPairs ? 3 : 2);
if (!folder) {
  console.error('usage: node write.mjs FOLDER [SEED [SETS [TEXTS]]] | --pairs FOLDER');
  process.exit(2);
}
fs.mkdirSync(folder, { recursive: true });
const save = (name, text) => fs.writeFileSync(path.join(folder, name), text);
/** A line for each element of the list that matters. */
const lines = (list) => `[\n${list.map((one) => JSON.stringify(one)).join(',\n')}\n]`;

const accepts = (text) => cedar.checkParsePolicySet({ staticPolicies: text }).type === 'success';

/** The request with the answer of cedar-wasm. */
function answered(request, policies, entities) {
  const answer = cedar.isAuthorized({ ...request, policies: { staticPolicies: policies }, entities });
  if (answer.type !== 'success') throw new Error(JSON.stringify(answer.errors.map((error) => error.message)));
  const { decision, diagnostics } = answer.response;
  return { ...request, decision, reason: diagnostics.reason.sort(), errors: diagnostics.errors.map((error) => error.policyId).sort() };
}

/** A text of so many policies, each of which cedar-wasm accepts. */
function policies(count, make) {
  const list = [];
  while (list.length < count) {
    const text = make();
    if (accepts(text)) list.push(text);
  }
  return list.join('\n');
}

const conditional = (condition) => `permit(principal, action, resource) when { ${condition} };`;

/** Conditions as policies of sets of 400, each put to one simple request. */
function saveConditions(name, conditions) {
  const request = { principal: { type: 'User', id: 'a' }, action: { type: 'Action', id: 'view' }, resource: { type: 'Doc', id: 'd' }, context: { a: 'a' } };
  const entities = [{ uid: { type: 'User', id: 'a' }, attrs: { a: 'x' }, parents: [{ type: 'Group', id: 'g' }] }];
  save(`${name}.entities.json`, `${lines(entities)}\n`);
  for (let i = 0; i * 400 < conditions.length; i++) {
    const text = conditions.slice(i * 400, (i + 1) * 400).map(conditional).join('\n');
    save(`${name}${i}.cedar`, `${text}\n`);
    save(`${name}${i}.json`, `{"policies": "${name}${i}.cedar", "entities": "${name}.entities.json", "requests": ${lines([answered(request, text, entities)])}}\n`);
  }
}

/** Each with the answer, or with `accept: false` where cedar-wasm reads the entities or the request as nothing. */
function saveForms() {
  const text = json.policies.map(conditional).join('\n');
  const list = [...json.forms()].map(({ entities, request }) => {
    const answer = cedar.isAuthorized({ ...request, policies: { staticPolicies: text }, entities });
    if (answer.type !== 'success') return { entities, request, accept: false };
    const { decision, diagnostics } = answer.response;
    return { entities, request: { ...request, decision, reason: diagnostics.reason, errors: diagnostics.errors.map((error) => error.policyId) }, accept: true };
  });
  save('forms.cedar', `${text}\n`);
  save('forms.json', `{"policies": "forms.cedar", "forms": ${lines(list)}}\n`);
  return list.length;
}

if (ofPairs) {
  const conditions = [...pairs()];
  saveConditions('pairs', conditions);
  console.log(`${folder}: ${conditions.length} conditions, ${saveForms()} forms of entities and requests`);
  process.exit(0);
}

const random = new Random(Number(seed));
const cases = new Cases(random);
const setsPerEntities = 8;
let entities = [];
let entitiesFile = '';
for (let i = 0; i < Number(sets); i++) {
  if (i % setsPerEntities === 0) {
    entities = cases.entities();
    entitiesFile = `entities${i / setsPerEntities}.json`;
    save(entitiesFile, `${lines(entities)}\n`);
  }
  // Of one effect alone, every policy shows whether it holds or fails.
  const mixed = i % 4 === 3;
  const text = policies(mixed ? 8 : 25, () => cases.policy(mixed ? random.pick(['permit', 'forbid']) : 'permit', mixed, mixed ? 2 : 2 + random.below(4)));
  const requests = random.list(3, () => answered(cases.request(), text, entities));
  save(`set${i}.cedar`, `${text}\n`);
  save(`set${i}.json`, `{"policies": "set${i}.cedar", "entities": "${entitiesFile}", "requests": ${lines(requests)}}\n`);
}
const verdicts = random.list(Number(texts), () => {
  const text = cases.text();
  return { text, accept: accepts(text) };
});
save('texts.json', `{"cases": ${lines(verdicts)}}\n`);
const cornerTexts = [...corners.texts, ...corners.conditions.map(conditional)];
save('corners.json', `{"cases": ${lines(cornerTexts.map((text) => ({ text, accept: accepts(text) })))}}\n`);
saveConditions('corners', corners.conditions.filter((condition) => accepts(conditional(condition))));
console.log(`${folder}: ${sets} sets; ${texts} texts, ${verdicts.filter((one) => one.accept).length} accepted`);
