// Search in pages that were opened from a folder: browsers refuse workers there, so the search
// script runs in a hidden frame instead. A page from a server keeps the real thing.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.document.open();
      this.inside.document.write("<!doctype html><title>search</title><body></body>");
      this.inside.document.close();
      const load = (address) => new Promise((done) => {
        const script = this.inside.document.createElement("script");
        script.onload = done;
        script.src = address;
        this.inside.document.body.append(script);
      });
      this.inside.importScripts = (...addresses) => Promise.all(addresses.map(load));
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = load(url);
    }
    postMessage(data) {
      this.ready.then(() => {
        this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
      });
    }
  };
}
