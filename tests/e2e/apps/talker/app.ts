/** An app that prints a line for each request. */
export default {
  fetch(request: Request): Response {
    const { pathname, searchParams } = new URL(request.url);
    if (searchParams.get("level") === "warn") console.warn(`said ${pathname}`);
    else console.log(`said ${pathname}`);
    return new Response("said");
  },
};
