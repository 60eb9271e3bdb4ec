// Certificates that openssl makes, in a folder of the test's own.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { trust } from './http.mjs';

const openssl = (...args) => execFileSync('openssl', args, { stdio: ['ignore', 'pipe', 'pipe'] });
const utc = (date) => `${date.toISOString().replace(/[-:T]|\.\d+Z/g, '')}Z`;
const DAY_MS = 86_400_000;
const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** An authority: {file, pem, issue()}. */
export class Authority {
  constructor(folder, name = 'Test Authority') {
    this.folder = folder;
    this.name = name.toLowerCase().replaceAll(' ', '-');
    this.file = path.join(folder, `${this.name}.pem`);
    this.keyFile = path.join(folder, `${this.name}.key`);
    openssl('req', '-x509', ...curve, '-days', '2', '-subj', `/CN=${name}`, '-keyout', this.keyFile, '-out', this.file);
    this.pem = fs.readFileSync(this.file, 'utf8');
  }

  /** A certificate with its key: {cert, key (texts), certFile, keyFile}. `openssl x509` writes no end to the second, and newer ones none in the past. */
  issue(name, { subject = `/CN=${name}`, san = 'IP:127.0.0.1,DNS:localhost', usage = 'serverAuth', endsAt = new Date(Date.now() + 2 * DAY_MS) } = {}) {
    const at = (suffix) => path.join(this.folder, `${this.name}-${name}.${suffix}`);
    const begin = new Date(Math.min(Date.now(), endsAt - DAY_MS));
    fs.writeFileSync(at('ext'), `subjectAltName=${san}\nextendedKeyUsage=${usage}\n`);
    openssl('req', '-utf8', ...curve, '-subj', subject, '-keyout', at('key'), '-out', at('csr'));
    fs.writeFileSync(at('index'), '');
    fs.writeFileSync(at('cnf'), `[ca]\ndefault_ca=own\n[own]\ndatabase=${at('index')}\nnew_certs_dir=${this.folder}\nrand_serial=yes\ndefault_md=sha256\npolicy=any\n[any]\ncommonName=supplied\norganizationName=optional\n`);
    openssl('ca', '-batch', '-notext', '-utf8', '-preserveDN', '-config', at('cnf'), '-cert', this.file, '-keyfile', this.keyFile, '-in', at('csr'), '-startdate', utc(begin), '-enddate', utc(endsAt), '-extfile', at('ext'), '-out', at('pem'));
    return { certFile: at('pem'), keyFile: at('key'), cert: fs.readFileSync(at('pem'), 'utf8'), key: fs.readFileSync(at('key'), 'utf8') };
  }
}

/** An authority that this process trusts from now on, and a certificate of it for the gateway. */
export function gatewayCertificates(folder) {
  const authority = new Authority(folder);
  trust({ ca: authority.pem });
  return { authority, server: authority.issue('server') };
}

/** The `tls` block of a port. */
export const tlsBlock = ({ certFile, keyFile }, more = {}) => ({ cert: certFile, key: keyFile, ...more });
