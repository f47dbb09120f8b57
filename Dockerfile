# Builds one image for both processes: the API (default) and the worker (command: node dist/apps/worker/src/main.js).
FROM node:22-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
COPY . .
RUN npm run build && npm prune --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error

FROM node:22-bookworm-slim
ENV NODE_ENV=production PORT=3000
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/scripts/healthcheck.mjs ./scripts/
# The user of the base image that is not root; nothing is written to the disk.
USER node
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=4s --start-period=30s --retries=3 CMD ["node", "scripts/healthcheck.mjs"]
# No shell and no npm in between: SIGTERM reaches the server itself.
CMD ["node", "dist/apps/seckill/src/main.js"]
