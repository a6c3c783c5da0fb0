// Runs inside the node, where nothing of the machine's network is to be reached: listens on the node's address, and passes each connection on through a
// socket file, behind which the test stands. Arguments: address, then pairs of port and socket file.
import { connect, createServer } from "node:net";

const [address = "", ...pairs] = process.argv.slice(2);
for (let at = 0; at + 1 < pairs.length; at += 2) {
  const [port, file = ""] = [Number(pairs[at]), pairs[at + 1]];
  createServer((client) => {
    const server = connect(file);
    client.pipe(server).pipe(client);
    client.on("error", () => server.destroy());
    server.on("error", () => client.destroy());
  }).listen(port, address, () => process.stdout.write(`${port} listens\n`));
}
