// Writes plain objects as block YAML, the way a person would lay out a configuration.

export function toYaml(value, indent = 0) {
  const pad = ' '.repeat(indent);
  if (Array.isArray(value)) {
    if (value.length === 0) return `${pad}[]\n`;
    return value
      .map((item) => {
        const text = toYaml(item, indent + 2);
        return isBlock(item) ? `${pad}- ${text.trimStart()}` : `${pad}- ${text.trim()}\n`;
      })
      .join('');
  }
  if (isObject(value)) {
    const keys = Object.keys(value).filter((key) => value[key] !== undefined);
    if (keys.length === 0) return `${pad}{}\n`;
    return keys
      .map((key) =>
        isBlock(value[key])
          ? `${pad}${scalar(key)}:\n${toYaml(value[key], indent + 2)}`
          : `${pad}${scalar(key)}: ${toYaml(value[key], 0).trim()}\n`,
      )
      .join('');
  }
  return `${pad}${scalar(value)}\n`;
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

const isBlock = (value) =>
  Array.isArray(value) ? value.length > 0 : isObject(value) && Object.values(value).some((v) => v !== undefined);

function scalar(value) {
  if (typeof value !== 'string') return String(value);
  return /^[A-Za-z][A-Za-z0-9_.-]*$/.test(value) && !/^(y|n|yes|no|on|off|true|false|null)$/i.test(value) ? value : JSON.stringify(value);
}
