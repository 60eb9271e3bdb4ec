// Images of programs of this machine, without a registry: archives that containerd and docker take.
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { run } from '../../deploy/lib/tools.mjs';

export function good(command, words, options) {
  const { status, stdout, stderr } = run(command, words, options);
  if (status !== 0) throw new Error(`${command} ${words.join(' ')}\n${stdout}${stderr}`);
  return stdout;
}

/** The libraries that a program needs, and its loader. */
function libraries(program) {
  const { status, stdout } = run('ldd', [program]);
  return status === 0 ? [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, file]) => file) : []; // 1: a static one
}

/** Makes FOLDER/NAME.tar, the image NAME:1, of programs by their place in it. It runs as a user without rights. */
export function makeImage(folder, name, programs) {
  const work = path.join(folder, `image-${name}`), tree = path.join(work, 'tree');
  for (const [place, program] of Object.entries(programs)) {
    for (const [to, from] of [[place, program], ...libraries(program).map((file) => [file, realpathSync(file)])]) {
      mkdirSync(path.join(tree, path.dirname(to)), { recursive: true });
      cpSync(from, path.join(tree, to));
    }
  }
  const archive = path.join(folder, `${name}.tar`), layer = path.join(work, 'layer.tar');
  good('tar', ['--owner=0', '--group=0', '-C', tree, '-cf', layer, '.']);
  const digest = createHash('sha256').update(readFileSync(layer)).digest('hex');
  const config = { architecture: process.arch === 'x64' ? 'amd64' : process.arch, os: 'linux', config: { User: '1000:1000', Entrypoint: [Object.keys(programs)[0]] }, rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] } };
  writeFileSync(path.join(work, 'config.json'), JSON.stringify(config));
  writeFileSync(path.join(work, 'manifest.json'), JSON.stringify([{ Config: 'config.json', RepoTags: [`docker.io/library/${name}:1`], Layers: ['layer.tar'] }]));
  good('tar', ['-C', work, '-cf', archive, 'manifest.json', 'config.json', 'layer.tar']);
  return archive;
}
