// The command line of the scripts:
//
//   node SCRIPT [--mode=MODE] [--only=CHECK,CHECK] [--patience=MS] -- SERVER [ARGUMENT...]
//   node SCRIPT [--mode=MODE] [--only=CHECK,CHECK] [--patience=MS] --url=URL
const separator = process.argv.indexOf('--');

// option returns the value of --name=value, or undefined.
export function option(name) {
  const prefix = `--${name}=`;
  const ours = separator < 0 ? process.argv : process.argv.slice(0, separator);
  return ours.find((arg) => arg.startsWith(prefix))?.slice(prefix.length);
}

// serverTarget returns where the server is: a { url }, or a { command, args } to start
// it with. Without either the script ends with status 2.
export function serverTarget() {
  const url = option('url');
  const [command, ...args] = separator < 0 ? [] : process.argv.slice(separator + 1);
  if ((url === undefined) === (command === undefined)) {
    console.error('usage: node SCRIPT [--mode=MODE] [--only=CHECK,CHECK] [--patience=MS] (--url=URL | -- SERVER [ARGUMENT...])');
    process.exit(2);
  }
  return url === undefined ? { command, args } : { url };
}
