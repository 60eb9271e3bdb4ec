// Debian's nginx with its default buffering, in front of a gateway.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Child } from './child.mjs';
import { temporaryFolder } from './gateway.mjs';
import { exchange } from './http.mjs';
import { defer } from './lifetime.mjs';
import { freePort } from './ports.mjs';

const PROGRAM = ['/usr/sbin/nginx', '/usr/bin/nginx'].find((file) => fs.existsSync(file));

/** Why there is no nginx here, or false. */
export const nginxMissing = PROGRAM ? false : 'nginx is not installed';

/** The address of an nginx that passes everything to `target`. */
export async function startNginx(t, target) {
  const folder = temporaryFolder(t);
  const port = await freePort();
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${path.join(folder, name)};`);
  fs.writeFileSync(
    path.join(folder, 'nginx.conf'),
    `daemon off; pid ${path.join(folder, 'pid')}; error_log stderr; ${process.getuid() === 0 ? 'user root;' : ''}
events {}
http { access_log off; ${places.join(' ')}
  server { listen 127.0.0.1:${port}; location / { proxy_pass ${new URL(target).origin}; proxy_http_version 1.1; proxy_set_header Host localhost; } } }
`,
  );
  execFileSync(PROGRAM, ['-t', '-q', '-p', folder, '-c', path.join(folder, 'nginx.conf'), '-e', 'stderr']);
  const child = new Child(PROGRAM, ['-p', folder, '-c', path.join(folder, 'nginx.conf'), '-e', 'stderr'], { name: 'nginx' });
  defer(t, () => child.stop('SIGTERM'));
  const url = `http://127.0.0.1:${port}`;
  await child.ready(async () => (await exchange(`${url}/nowhere`)).status === 404, 'nginx');
  return `${url}${new URL(target).pathname}`;
}
