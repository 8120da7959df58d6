/** An app that prints a line for each request, and has a service worker that would like more than is its own. */
export default {
  fetch(request: Request): Response {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/worker.js") {
      return new Response("self.onfetch = (event) => event.respondWith(new Response('taken'));", {
        headers: { "content-type": "text/javascript", "service-worker-allowed": "/" },
      });
    }
    if (searchParams.get("level") === "warn") console.warn(`said ${pathname}`);
    else console.log(`said ${pathname}`);
    return new Response("<!doctype html><title>talker</title>said", {
      headers: { "content-type": "text/html" },
    });
  },
};
