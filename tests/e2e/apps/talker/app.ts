/** An app that prints a line for each request, and tries what a page may not: a wide service worker, a redirect away. */
export default {
  fetch(request: Request): Response {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/worker.js") {
      return new Response("self.onfetch = (event) => event.respondWith(new Response('taken'));", {
        headers: { "content-type": "text/javascript", "service-worker-allowed": "/" },
      });
    }
    if (pathname === "/away") return Response.redirect(new URL(searchParams.get("to") ?? "/", request.url));
    if (searchParams.get("level") === "warn") console.warn(`said ${pathname}`);
    else console.log(`said ${pathname}`);
    return new Response("<!doctype html><title>talker</title>said", {
      headers: { "content-type": "text/html" },
    });
  },
};
