// The search takes a leading dash as "without" and splits words at the others: the name of an option becomes its words, on
// the way to the worker that searches. All are required, but for the last, which may be half typed.
const send = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  if (typeof message?.data === "string")
    message.data = message.data.replace(/(^|\s)--?(\w[\w-]*)/g, (_, before, name) => {
      const words = name.split(/-+/).filter(Boolean);
      const last = words.pop();
      return before + [...words.map((word) => `+${word}`), last, `${last}*`].join(" ");
    });
  return send.call(this, message, ...rest);
};
